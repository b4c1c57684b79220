/* into: retyped */
SELECT id, ts, CAST(get_json_object(payload, '$.status') AS INT) AS status, CAST(get_json_object(payload, '$.bytes') AS BIGINT) AS bytes
FROM landing
