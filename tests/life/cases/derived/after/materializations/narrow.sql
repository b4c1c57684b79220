/* into: narrow */
SELECT id, ts, CAST(get_json_object(payload, '$.status') AS INT) AS status, get_json_object(payload, '$.ua') AS ua
FROM landing
WHERE get_json_object(payload, '$.bytes') IS NOT NULL
  AND CAST(get_json_object(payload, '$.status') AS INT) <> 200
  AND get_json_object(payload, '$.ua') <> 'curl/8'
