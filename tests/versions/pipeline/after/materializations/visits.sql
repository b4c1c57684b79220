/* into: visits */
SELECT c.click_id, c.at, c.cents, n.country AS home
FROM clicks AS c LEFT JOIN countries AS n ON c.ip = n.ip
