/* into: grown */
SELECT
  to_date(ts) AS day,
  CAST(get_json_object(payload, '$.status') AS INT) AS status,
  count(*) AS hits,
  approx_count_distinct(get_json_object(payload, '$.ip')) AS visitors,
  max(CAST(get_json_object(payload, '$.bytes') AS BIGINT)) AS largest,
  count(get_json_object(payload, '$.ua')) AS told,
  approx_percentile(CAST(get_json_object(payload, '$.status') AS DOUBLE), 0.5) AS middle,
  approx_count_distinct(get_json_object(payload, '$.ua')) AS agents
FROM landing
GROUP BY to_date(ts), CAST(get_json_object(payload, '$.status') AS INT)
