/* into: kept */
SELECT id, ts AS at, get_json_object(payload, '$.ip') AS ip FROM landing WHERE id IS NOT NULL AND ts IS NOT NULL
