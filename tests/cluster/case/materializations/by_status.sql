/* into: by_status */
SELECT
  to_date(ts) AS day,
  CAST(get_json_object(payload, '$.status') AS INT) AS status,
  count(*) AS hits,
  sum(CAST(get_json_object(payload, '$.bytes') AS BIGINT)) AS bytes,
  approx_count_distinct(get_json_object(payload, '$.ip')) AS visitors
FROM landing
GROUP BY to_date(ts), CAST(get_json_object(payload, '$.status') AS INT)
