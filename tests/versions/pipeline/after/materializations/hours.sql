/* into: by_hour */
SELECT
  day,
  date_trunc('HOUR', ts) AS hour,
  count(*) AS requests,
  count(*) FILTER (WHERE status > 399) AS errors,
  sum(bytes) AS bytes,
  max(ms) AS slowest,
  approx_count_distinct(ip) AS visitors,
  avg(ms) AS mean
FROM requests
WHERE status >= 100 AND NOT (status > 599)
GROUP BY day, date_trunc('HOUR', ts)
