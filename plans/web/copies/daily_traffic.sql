/*
into: daily_traffic
mode: replace
description: One row for each day and tenant, for the billing team
*/
SELECT day, tenant, sum(requests) AS requests, sum(errors) AS errors, sum(bytes) AS bytes
FROM requests_by_hour
GROUP BY day, tenant
