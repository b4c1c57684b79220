/* into: by_hour */
SELECT
  day,
  date_trunc('HOUR', ts) AS hour,
  count(*) AS requests,
  count_if(status >= 400) AS errors,
  sum(bytes) AS bytes,
  max(ms) AS slowest,
  approx_percentile(ms, 0.95) AS p95,
  approx_count_distinct(ip) AS visitors,
  avg(ms) AS mean
FROM requests
GROUP BY day, date_trunc('HOUR', ts)
