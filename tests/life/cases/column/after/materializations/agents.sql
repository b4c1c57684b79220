/* into: by_agent */
SELECT day, user_agent, count(*) AS requests, sum(bytes) AS bytes, approx_count_distinct(ip) AS visitors
FROM requests
GROUP BY day, user_agent
