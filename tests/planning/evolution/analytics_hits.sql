WITH parsed AS (
  SELECT timestamp, action, version, tenant_id, domain AS own, COALESCE(session_id, '0') AS session_id,
    GET_JSON_OBJECT(payload, '$.domain') AS told, GET_JSON_OBJECT(payload, '$.location') AS location,
    GET_JSON_OBJECT(payload, '$.referrer') AS referrer, GET_JSON_OBJECT(payload, '$.pathname') AS pathname,
    GET_JSON_OBJECT(payload, '$.href') AS href, DOMAINWITHOUTWWW(GET_JSON_OBJECT(payload, '$.href')) AS current_domain,
    LOWER(GET_JSON_OBJECT(payload, '$.user-agent')) AS user_agent
  FROM analytics_events WHERE action = 'page_hit'
)
SELECT timestamp, action, version, session_id, tenant_id,
  CASE WHEN own <> '' THEN own WHEN current_domain <> '' THEN current_domain ELSE told END AS domain,
  location, referrer, pathname, href, current_domain,
  CASE WHEN user_agent RLIKE 'android' THEN 'mobile-android' ELSE 'desktop' END AS device,
  CASE WHEN user_agent RLIKE 'firefox' THEN 'firefox' ELSE 'Unknown' END AS browser
FROM parsed
