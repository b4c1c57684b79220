/* into: copied */
SELECT id, ts, get_json_object(payload, '$.ip') AS ip, CAST(get_json_object(payload, '$.status') AS INT) AS status FROM landing
