/* into: at_read */
SELECT
  id,
  ts,
  get_json_object(payload, '$.ip') AS ip,
  substring_index(get_json_object(payload, '$.ip'), '.', 3) AS net
FROM landing
