/*
parameters:
  kind: string
  most: {type: int, default: 10}
*/
SELECT event_id, ts, value FROM events WHERE kind = :kind ORDER BY ts DESC LIMIT :most
