/* into: removed */
SELECT id, ts FROM landing
