/* into: described */
SELECT id, ts, get_json_object(payload, '$.ip') AS ip, get_json_object(payload, '$.ua') AS unread, 'http' AS kind FROM landing
