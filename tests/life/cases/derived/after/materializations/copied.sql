/* into: copied */
SELECT
  id,
  ts,
  get_json_object(payload, '$.ip') AS ip,
  CAST(get_json_object(payload, '$.status') AS INT) AS status,
  concat(CAST(CAST(get_json_object(payload, '$.status') AS INT) div 100 AS STRING), 'xx ', get_json_object(payload, '$.ip')) AS family
FROM landing
