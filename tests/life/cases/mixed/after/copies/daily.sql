/* into: daily_counts */
SELECT to_date(ts) AS day, count(*) AS n FROM described GROUP BY to_date(ts)
