/* into: by_agent */
SELECT day, user_agent, count(*) AS requests, sum(bytes) AS bytes, count_if(user_agent RLIKE :bots) AS bots
FROM requests
GROUP BY day, user_agent
