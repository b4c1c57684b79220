/* into: below */
SELECT id, ts, net FROM at_read
