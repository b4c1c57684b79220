/* into: requests */
SELECT
  id AS event_id,
  ts,
  to_date(ts) AS day,
  get_json_object(payload, '$.ip') AS ip,
  CAST(get_json_object(payload, '$.status') AS INT) AS status,
  CAST(get_json_object(payload, '$.bytes') AS BIGINT) AS bytes,
  CAST(get_json_object(payload, '$.ms') AS DOUBLE) AS ms
FROM landing
