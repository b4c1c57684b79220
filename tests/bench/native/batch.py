"""The demo's query of requests in DuckDB's words, and one batch of it: computed by DuckDB, committed by deltalake."""

from pathlib import Path

import duckdb
from deltalake import DeltaTable, write_deltalake

# for documents whose values have the declared types: what others give is told by `functions`
QUERY = r"""
WITH parsed AS (
  SELECT id, region, ts, event[1] AS tenant, event[2] AS ip, event[3] AS method, event[4] AS target, event[5] AS protocol,
    CAST(event[6] AS INTEGER) AS status, CAST(event[7] AS BIGINT) AS bytes, CAST(event[8] AS DOUBLE) AS duration_ms, event[9] AS referrer,
    event[10] AS user_agent
  FROM (
    SELECT id, region, ts, json_extract_string(payload, ['$.tenant', '$.ip', '$.method', '$.path', '$.protocol', '$.status', '$.bytes',
      '$.duration_ms', '$.referrer', '$.user_agent']) AS event
    FROM landing
  )
)
SELECT id AS event_id, ts, CAST(ts AS DATE) AS day, date_trunc('hour', ts) AS hour, region, tenant, ip, method,
  string_split(target, '?')[1] AS path,
  CASE WHEN strpos(target, '?') > 0 THEN substr(target, strpos(target, '?') + 1) END AS query,
  split_part(string_split(target, '?')[1], '/', 2) AS section,
  protocol, status,
  CASE WHEN status >= 500 THEN '5xx' WHEN status >= 400 THEN '4xx' WHEN status >= 300 THEN '3xx' WHEN status >= 200 THEN '2xx' END AS status_class,
  status >= 400 AS is_error, bytes, duration_ms, referrer,
  nullif(regexp_extract(referrer, '^[a-z]+://([^/?#]+)', 1), '') AS referrer_host,
  user_agent,
  CASE
    WHEN user_agent IS NULL THEN NULL
    WHEN regexp_matches(user_agent, '(?i)(bot|crawl|spider|slurp)') THEN 'Crawler'
    WHEN regexp_matches(user_agent, '(?i)(feed|rss)') THEN 'Feed reader'
    WHEN user_agent LIKE '%Firefox/%' THEN 'Firefox'
    WHEN regexp_matches(user_agent, '(OPR/|Opera)') THEN 'Opera'
    WHEN regexp_matches(user_agent, '(Chrome/|CriOS/|Chromium/)') THEN 'Chrome'
    WHEN regexp_matches(user_agent, '(MSIE |Trident/)') THEN 'Internet Explorer'
    WHEN user_agent LIKE '%Safari/%' THEN 'Safari'
    ELSE 'Other'
  END AS user_agent_family,
  CASE
    WHEN user_agent IS NULL THEN NULL
    WHEN user_agent LIKE '%Windows%' THEN 'Windows'
    WHEN regexp_matches(user_agent, '(iPhone|iPad|iPod)') THEN 'iOS'
    WHEN user_agent LIKE '%Mac OS X%' THEN 'macOS'
    WHEN user_agent LIKE '%Android%' THEN 'Android'
    WHEN user_agent LIKE '%Linux%' THEN 'Linux'
    ELSE 'Other'
  END AS user_agent_os,
  regexp_matches(user_agent, '(?i)(bot|crawl|spider|slurp)') AS is_bot
FROM parsed
"""


def carry(landing: Path, target: str, threads: int) -> int:
    """All rows of the landing table in one commit into a table that exists. Returns their number."""
    db = duckdb.connect(config={"threads": threads})
    db.execute("SET TimeZone = 'UTC'")
    files = [uri.removeprefix("file://") for uri in DeltaTable(str(landing)).file_uris()]
    db.execute("CREATE VIEW landing AS SELECT * FROM read_parquet($files)".replace("$files", repr(files)))
    rows = db.execute(QUERY).to_arrow_table()
    write_deltalake(DeltaTable(target), rows, mode="append")
    return int(rows.num_rows)
