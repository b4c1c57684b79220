/* into: below */
SELECT id, ts FROM at_read
