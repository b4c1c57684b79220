/*
into: events_by_hour
*/
SELECT
  day,
  date_trunc('HOUR', ts) AS hour,
  kind,
  count(*) AS events,
  sum(value) AS value
FROM events
GROUP BY day, date_trunc('HOUR', ts), kind
