/* into: by_hour */
SELECT
  day,
  date_trunc('HOUR', ts) AS hour,
  count(*) AS requests,
  count_if(status >= 400) AS errors,
  sum(bytes) AS bytes,
  max(ms) AS slowest
FROM requests
GROUP BY day, date_trunc('HOUR', ts)
