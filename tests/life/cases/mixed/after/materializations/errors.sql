/* into: errors */
SELECT id, ts, status FROM retyped WHERE status >= '400'
