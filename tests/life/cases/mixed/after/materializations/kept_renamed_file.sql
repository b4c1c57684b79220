/* into: kept */
-- reformatted, moved, renamed aliases: plans nothing
WITH src AS (SELECT * FROM landing AS l WHERE l.ts IS NOT NULL AND l.id IS NOT NULL)
SELECT src.id, get_json_object(src.payload, '$.ip') AS ip, src.ts AS at
FROM src
