/*
description: The pages that failed most since a day
parameters:
  since: {type: date, default: "1970-01-01"}
  limit: {type: int, default: 10}
*/
SELECT path, status, count(*) AS errors
FROM requests
WHERE is_error AND day >= :since
GROUP BY path, status
ORDER BY errors DESC, path, status
LIMIT :limit
