/*
description: Who asks, by browser or crawler, since a day
parameters:
  since: {type: date, default: "1970-01-01"}
*/
SELECT
  coalesce(user_agent_family, 'not recorded') AS family,
  count(*) AS requests,
  count_if(is_bot) AS by_crawlers,
  count(DISTINCT ip) AS addresses
FROM requests
WHERE day >= :since
GROUP BY coalesce(user_agent_family, 'not recorded')
ORDER BY requests DESC, family
