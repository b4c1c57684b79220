/*
parameters: {day: date}
*/
SELECT hour, sum(errors) AS errors FROM by_hour WHERE day = :day GROUP BY hour
