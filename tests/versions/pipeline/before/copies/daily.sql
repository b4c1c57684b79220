/* into: daily_requests */
SELECT day, count(*) AS requests FROM requests GROUP BY day
