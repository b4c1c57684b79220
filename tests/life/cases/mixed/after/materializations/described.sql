/* into: described */
SELECT id, ts, get_json_object(payload, '$.ip') AS address, 'http' AS kind, 'log' AS source FROM landing
