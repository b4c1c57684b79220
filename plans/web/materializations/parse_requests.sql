/*
into: requests
description: Parses the event; every landing row gives one row
*/
WITH parsed AS (
  SELECT
    id,
    region,
    ts,
    from_json(
      payload,
      'tenant STRING, ip STRING, method STRING, path STRING, protocol STRING, status INT, bytes BIGINT, duration_ms DOUBLE, referrer STRING'
    ) AS event,
    get_json_object(payload, '$.user_agent') AS user_agent
  FROM landing
)
SELECT
  id AS event_id,
  ts,
  to_date(ts) AS day,
  date_trunc('HOUR', ts) AS hour,
  region,
  event.tenant AS tenant,
  event.ip AS ip,
  event.method AS method,
  substring_index(event.path, '?', 1) AS path,
  CASE WHEN instr(event.path, '?') > 0 THEN substr(event.path, instr(event.path, '?') + 1) END AS query,
  split_part(substring_index(event.path, '?', 1), '/', 2) AS section,
  event.protocol AS protocol,
  event.status AS status,
  CASE
    WHEN event.status >= 500 THEN '5xx'
    WHEN event.status >= 400 THEN '4xx'
    WHEN event.status >= 300 THEN '3xx'
    WHEN event.status >= 200 THEN '2xx'
  END AS status_class,
  event.status >= 400 AS is_error,
  event.bytes AS bytes,
  event.duration_ms AS duration_ms,
  event.referrer AS referrer,
  nullif(regexp_extract(event.referrer, '^[a-z]+://([^/?#]+)', 1), '') AS referrer_host,
  user_agent,
  CASE
    WHEN user_agent IS NULL THEN NULL
    WHEN user_agent RLIKE '(?i)(bot|crawl|spider|slurp)' THEN 'Crawler'
    WHEN user_agent RLIKE '(?i)(feed|rss)' THEN 'Feed reader'
    WHEN user_agent LIKE '%Firefox/%' THEN 'Firefox'
    WHEN user_agent RLIKE '(OPR/|Opera)' THEN 'Opera'
    WHEN user_agent RLIKE '(Chrome/|CriOS/|Chromium/)' THEN 'Chrome'
    WHEN user_agent RLIKE '(MSIE |Trident/)' THEN 'Internet Explorer'
    WHEN user_agent LIKE '%Safari/%' THEN 'Safari'
    ELSE 'Other'
  END AS user_agent_family,
  CASE
    WHEN user_agent IS NULL THEN NULL
    WHEN user_agent LIKE '%Windows%' THEN 'Windows'
    WHEN user_agent RLIKE '(iPhone|iPad|iPod)' THEN 'iOS'
    WHEN user_agent LIKE '%Mac OS X%' THEN 'macOS'
    WHEN user_agent LIKE '%Android%' THEN 'Android'
    WHEN user_agent LIKE '%Linux%' THEN 'Linux'
    ELSE 'Other'
  END AS user_agent_os,
  user_agent RLIKE '(?i)(bot|crawl|spider|slurp)' AS is_bot
FROM parsed
