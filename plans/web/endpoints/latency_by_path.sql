/*
description: Requests and slowness of each section of the site since a day
parameters:
  since: {type: date, default: "1970-01-01"}
*/
SELECT
  section,
  count(*) AS requests,
  round(approx_percentile(duration_ms, 0.5), 1) AS median_ms,
  round(approx_percentile(duration_ms, 0.95), 1) AS p95_ms
FROM requests
WHERE day >= :since
GROUP BY section
ORDER BY requests DESC, section
