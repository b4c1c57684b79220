"""Every table of a stored region's live release, computed again from its landing tables in plain SQL.

Imports nothing of the program that it judges: it knows the pipeline of `pipeline/`, Delta tables and the manifest's JSON.
"""

import json
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

PARSED = """
SELECT id AS event_id, ts, ts::DATE AS day, payload->>'$.ip' AS ip, (payload->>'$.status')::INT AS status,
  (payload->>'$.bytes')::BIGINT AS bytes, (payload->>'$.ms')::DOUBLE AS ms, payload->>'$.ua' AS user_agent
FROM landing
"""
TRUTH = {
    "requests": PARSED,
    "visits": 'SELECT click_id, clicks."at", cents, country FROM clicks LEFT JOIN countries USING (ip)',
    "by_hour": f"""
        SELECT day, date_trunc('hour', ts) AS hour, count(*) AS requests, count(*) FILTER (status > 399) AS errors,
          sum(bytes)::BIGINT AS bytes, max(ms) AS slowest, sum(ms) AS mean__sum, count(ms) AS mean__count
        FROM ({PARSED}) WHERE status BETWEEN 100 AND 599 GROUP BY ALL
    """,
    "by_agent": f"""
        SELECT day, user_agent, count(*) AS requests, sum(bytes)::BIGINT AS bytes,
          count(*) FILTER (regexp_matches(user_agent, '(?i)bot|crawler')) AS bots
        FROM ({PARSED}) GROUP BY ALL
    """,
}
MERGED = {
    "by_hour": """
        SELECT day, hour, sum(requests)::BIGINT AS requests, sum(errors)::BIGINT AS errors, sum(bytes)::BIGINT AS bytes,
          max(slowest) AS slowest, sum(mean__sum) AS mean__sum, sum(mean__count)::BIGINT AS mean__count
        FROM stored GROUP BY ALL
    """,
    "by_agent": """
        SELECT day, user_agent, sum(requests)::BIGINT AS requests, sum(bytes)::BIGINT AS bytes, sum(bots)::BIGINT AS bots
        FROM stored GROUP BY ALL
    """,
}
LANDING = ("landing", "clicks", "countries")


def release(warehouse: Path, state: str) -> dict[str, Any]:
    """The manifest of the release in this state."""
    rows = DeltaTable(str(warehouse / "_console" / "web" / "releases")).to_pyarrow_table().to_pylist()
    results = [row["manifest"] for row in rows if row["state"] == state]
    assert len(results) == 1, f"{len(results)} releases are {state}"
    manifest: dict[str, Any] = json.loads(results[0])
    return manifest


def faults(warehouse: Path, state: str = "live") -> dict[str, str]:
    """Tables of a release whose rows are not those of its landing tables, each with how many and the first two.

    raises  AssertionError where nothing could be looked at
    """
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    for name in LANDING:
        db.register(name, DeltaTable(str(warehouse / name)).to_pyarrow_table())
    wrong, looked = {}, 0
    for table in release(warehouse, state)["tables"]:
        name = table["table"]["name"]
        if name in LANDING:
            continue
        stored = DeltaTable(str(warehouse / table["version"]["path"])).to_pyarrow_table()
        db.register("stored", stored)
        columns = [c[0] for c in db.execute(f"DESCRIBE ({TRUTH[name]})").fetchall() if c[0] in stored.column_names]
        chosen = ", ".join(f'"{column}"' for column in columns)
        db.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS SELECT {chosen} FROM ({TRUTH[name]})")
        present = MERGED.get(name, "SELECT * FROM stored")
        db.execute(f"CREATE OR REPLACE TEMP TABLE held AS SELECT {chosen} FROM ({present})")
        lost = db.execute("FROM wanted EXCEPT ALL FROM held").fetchall()
        extra = db.execute("FROM held EXCEPT ALL FROM wanted").fetchall()
        looked += len(db.execute("FROM held").fetchall())
        if lost or extra:
            wrong[name] = f"{len(lost)} rows missing, {len(extra)} too many: {lost[:1]} {extra[:1]}"
    assert looked, "nothing was looked at"
    return wrong
