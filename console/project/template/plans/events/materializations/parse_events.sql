/*
into: events
*/
SELECT
  id AS event_id,
  ts,
  to_date(ts) AS day,
  get_json_object(payload, '$.kind') AS kind,
  CAST(get_json_object(payload, '$.value') AS DOUBLE) AS value
FROM landing
