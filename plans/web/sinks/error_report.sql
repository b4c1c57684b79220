/*
path: exports/error_report
format: ndjson
description: Failed requests of each day and page, for the service's authors
*/
SELECT day, path, status, count(*) AS errors
FROM requests
WHERE is_error
GROUP BY day, path, status
