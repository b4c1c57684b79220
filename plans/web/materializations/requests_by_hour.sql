/*
into: requests_by_hour
description: Counts of one hour and tenant; kept as partial states and merged when read
*/
SELECT
  day,
  hour,
  tenant,
  count(*) AS requests,
  count_if(is_error) AS errors,
  sum(bytes) AS bytes,
  max(duration_ms) AS slowest_ms,
  approx_percentile(duration_ms, 0.95) AS p95_ms,
  approx_count_distinct(ip) AS visitors
FROM requests
GROUP BY day, hour, tenant
