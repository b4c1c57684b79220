/* into: at_read */
SELECT id, ts, get_json_object(payload, '$.ip') AS ip FROM landing
