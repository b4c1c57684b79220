"""The demo's independent check: reads the tables only through their files, and recomputes everything with its own SQL.

    python check.py --region eu=WAREHOUSE … --reads READS.json --ledgers DIR --facts FACTS.json [--json RESULT.json]

Imports nothing of the program under test. For each region, landing is parsed here by DuckDB and compared, as a multiset
of whole rows, with table `requests` of the live release; likewise `requests_by_hour`, its sketches within a tolerance.
Exits 1 on any gap, duplicate, difference, failed or torn read, and if nothing was compared or read.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import datasketches
import duckdb
from deltalake import DeltaTable, QueryBuilder

MIN_READS = 200
RANK_TOLERANCE = 0.04  # of a KLL sketch with k = 200: three times its error
COUNT_TOLERANCE = 0.08  # of an HLL sketch with 2^12 registers: five times its error

PARSED = r"""
CREATE TABLE parsed AS
SELECT id AS event_id, ts, ts::date AS day, date_trunc('hour', ts) AS hour, region,
  event[1] AS tenant, event[2] AS ip, event[3] AS method,
  string_split(target, '?')[1] AS path,
  CASE WHEN contains(target, '?') THEN substr(target, strpos(target, '?') + 1) END AS query,
  coalesce(string_split(string_split(target, '?')[1], '/')[2], left(target, 0)) AS section,
  event[4] AS protocol, status, (status // 100)::varchar || 'xx' AS status_class, status >= 400 AS is_error,
  (event[5])::bigint AS bytes, (event[6])::double AS duration_ms,
  event[7] AS referrer,
  nullif(regexp_extract(event[7], '^[a-z]+://([^/?#]+)', 1), '') AS referrer_host,
  agent AS user_agent,
  CASE WHEN agent IS NULL THEN NULL
    WHEN regexp_matches(agent, '(?i)bot|crawl|spider|slurp') THEN 'Crawler'
    WHEN regexp_matches(agent, '(?i)feed|rss') THEN 'Feed reader'
    WHEN contains(agent, 'Firefox/') THEN 'Firefox'
    WHEN contains(agent, 'OPR/') OR contains(agent, 'Opera') THEN 'Opera'
    WHEN contains(agent, 'Chrome/') OR contains(agent, 'CriOS/') OR contains(agent, 'Chromium/') THEN 'Chrome'
    WHEN contains(agent, 'MSIE ') OR contains(agent, 'Trident/') THEN 'Internet Explorer'
    WHEN contains(agent, 'Safari/') THEN 'Safari' ELSE 'Other' END AS user_agent_family,
  CASE WHEN agent IS NULL THEN NULL
    WHEN contains(agent, 'Windows') THEN 'Windows'
    WHEN regexp_matches(agent, 'iPhone|iPad|iPod') THEN 'iOS'
    WHEN contains(agent, 'Mac OS X') THEN 'macOS'
    WHEN contains(agent, 'Android') THEN 'Android'
    WHEN contains(agent, 'Linux') THEN 'Linux' ELSE 'Other' END AS user_agent_os,
  regexp_matches(agent, '(?i)bot|crawl|spider|slurp') AS is_bot, hash(ts, payload) AS raw
FROM (
  SELECT *, event[8] AS agent, event[9] AS target, event[10]::int AS status FROM (
    SELECT id, region, ts::timestamptz AS ts, payload, json_extract_string(payload, ['$.tenant', '$.ip', '$.method',
      '$.protocol', '$.bytes', '$.duration_ms', '$.referrer', '$.user_agent', '$.path', '$.status']) AS event
    FROM read_parquet($files, union_by_name = true)
  )
)
"""
PROMOTED = """
CREATE TABLE promoted AS
SELECT event_id, ts::timestamptz AS ts, day::date AS day, hour::timestamptz AS hour, region, tenant, ip, method, path, query,
  section, protocol, status::int AS status, status_class, is_error, bytes::bigint AS bytes, duration_ms::double AS duration_ms,
  referrer, referrer_host, user_agent, user_agent_family, user_agent_os, is_bot
FROM read_parquet($files, union_by_name = true, hive_partitioning = true, hive_types = {'day': DATE})
"""
DIFFERENT = """
INSERT INTO different
SELECT event_id, CASE WHEN surplus > 0 THEN 'missing' ELSE 'extra' END
FROM (
  SELECT * EXCLUDE (owed), sum(owed)::bigint AS surplus FROM (
    SELECT * EXCLUDE (raw), 1 AS owed FROM parsed WHERE day IS NOT DISTINCT FROM $day
    UNION ALL SELECT *, -1 FROM promoted WHERE day IS NOT DISTINCT FROM $day)
  GROUP BY ALL HAVING surplus <> 0
), unnest(range(abs(surplus)))
"""
COUNTS = """
WITH missing AS (SELECT event_id FROM different WHERE side = 'missing'),
  extra AS (SELECT event_id FROM different WHERE side = 'extra'),
  changed AS (SELECT count(*) AS n FROM (FROM missing INTERSECT ALL FROM extra))
SELECT (SELECT count(*) FROM parsed) AS landing, (SELECT count(*) FROM promoted) AS compared,
  (SELECT count(*) FROM missing) - (SELECT n FROM changed) AS gaps,
  (SELECT count(*) FROM extra) - (SELECT n FROM changed) AS duplicates, (SELECT n FROM changed) AS changed,
  (SELECT sum(n - 1)::bigint FROM (SELECT count(*) AS n FROM parsed GROUP BY raw)) AS twins_in_landing,
  (SELECT sum(n - 1)::bigint FROM (
    SELECT count(*) AS n FROM promoted
    GROUP BY hash(region, ts, tenant, ip, method, path, query, protocol, status, bytes, duration_ms, referrer, user_agent)
  )) AS twins,
  (SELECT count(user_agent) FROM promoted) AS agents,
  (SELECT count(*) FROM promoted WHERE user_agent IS NULL) AS agentless
"""
STATES = """
SELECT * FROM read_parquet($files, union_by_name = true, hive_partitioning = true, hive_types = {'day': DATE})
"""
HOURS = """
SELECT coalesce(day::varchar, '') || ' ' || coalesce(epoch(hour)::bigint::varchar, '') || ' ' || coalesce(tenant, '') AS key,
  count(*) AS requests, count(*) FILTER (is_error) AS errors, sum(bytes)::bigint AS bytes, max(duration_ms) AS slowest_ms,
  count(DISTINCT ip) AS visitors, list_sort(list(duration_ms)) AS durations
FROM parsed GROUP BY day, hour, tenant
"""
ACKNOWLEDGED = """
WITH sent AS (SELECT prefix || n AS id FROM (SELECT prefix, unnest(range(first, first + rows)) AS n FROM acknowledged)),
  stored AS (SELECT event_id AS id, count(*) AS n FROM parsed GROUP BY event_id)
SELECT count(*) AS acknowledged, count(*) FILTER (stored.n IS NULL) AS lost,
  (SELECT count(*) FROM stored WHERE n > 1) AS doubled
FROM sent LEFT JOIN stored USING (id)
"""


class JudgedWarehouse:
    """One warehouse, read through its files. `db` has the expected and the actual rows."""

    def __init__(self, name: str, warehouse: str, pipeline: str, scratch: str) -> None:
        self.name, self.warehouse = name, Path(warehouse)
        self.db = duckdb.connect(str(Path(scratch) / f"{name}.duckdb"), config={"autoinstall_known_extensions": False})
        self.db.execute("SET TimeZone = 'UTC'")
        releases = DeltaTable(str(self.warehouse / "_console" / pipeline / "releases"))
        live = (
            QueryBuilder().register("t", releases).execute("SELECT id, manifest FROM t WHERE state = 'live'").read_all()
        )
        if live.num_rows != 1:
            raise SystemExit(f"{name}: {live.num_rows} live releases, there must be one")
        self.release = str(live.column("id").to_pylist()[0])
        self.manifest: dict[str, Any] = json.loads(live.column("manifest").to_pylist()[0])

    def delta(self, table: str) -> DeltaTable:
        state = next(state for state in self.manifest["tables"] if state["table"]["name"] == table)
        return DeltaTable(str(self.warehouse / state["version"]["path"]))

    def files(self, table: str) -> dict[str, list[str]]:
        return {"files": [uri.removeprefix("file://") for uri in self.delta(table).file_uris()]}

    def rows(self, table: str) -> int:
        """From the statistics in the log: cheap, and used only for waiting."""
        counts = self.delta(table).get_add_actions(flatten=True).column("num_records").to_pylist()
        return sum(counts)

    def read_landing(self) -> None:
        """The expected content of every table: all of landing, parsed here."""
        self.db.execute(PARSED, self.files("landing"))

    def figures(self, sql: str) -> dict[str, int]:
        cursor = self.db.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return {name: int(value or 0) for name, value in zip(names, cursor.fetchone() or (), strict=True)}


def wait_for_feeds(regions: list[JudgedWarehouse], seconds: float) -> None:
    """Wait, for a limited time, until every `requests` has as many rows as its landing and the aggregates are up to date."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(r.rows("landing") != r.rows("requests") for r in regions):
        time.sleep(0.5)
    versions: list[int] = []
    while time.monotonic() < until and versions != (
        versions := [region.delta("requests_by_hour").version() for region in regions]
    ):
        time.sleep(2.0)


def compare_rows(region: JudgedWarehouse) -> dict[str, int]:
    """Whole rows as multisets, day by day to bound memory; NULL counts as a day."""
    region.db.execute(PROMOTED, region.files("requests"))
    region.db.execute("CREATE TABLE different (event_id VARCHAR, side VARCHAR)")
    days = region.db.execute("SELECT day FROM parsed UNION SELECT day FROM promoted").fetchall()
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # a day is too small for DuckDB to parallelise by itself
        list(pool.map(lambda day: region.db.cursor().execute(DIFFERENT, {"day": day[0]}), days))
    return region.figures(COUNTS)


def compare_hours(region: JudgedWarehouse) -> dict[str, int]:
    """Hourly figures: counts, sums and maxima exactly, the 95th percentile and the visitors within a tolerance."""
    region.db.execute("SET preserve_insertion_order = false")
    cursor = region.db.execute(HOURS)
    expected = {row[0]: row[1:] for row in cursor.fetchall()}
    actual = merged(region)
    wrong = len(expected.keys() ^ actual.keys())
    for key in expected.keys() & actual.keys():
        *exact, visitors, durations = expected[key]
        states = actual[key]
        close = abs(states["visitors"] - visitors) <= max(3, visitors * COUNT_TOLERANCE)
        wrong += not (exact == states["exact"] and close and percentile_fits(durations, states["p95_ms"]))
    return {"hours": len(expected), "wrong_hours": wrong}


def merged(region: JudgedWarehouse) -> dict[str, dict[str, Any]]:
    """Partial states of `requests_by_hour`, merged here: key → {exact: [requests, errors, bytes, slowest], p95_ms, visitors}."""
    cursor = region.db.execute(STATES, region.files("requests_by_hour"))
    names = [column[0] for column in cursor.description or ()]
    # a partial state is named after its column: `requests__count`
    at = {name.split("__")[0]: position for position, name in enumerate(names)}
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for row in cursor.fetchall():
        hour = "" if row[at["hour"]] is None else int(row[at["hour"]].timestamp())
        key = f"{row[at['day']] or ''} {hour} {row[at['tenant']] or ''}"
        groups.setdefault(key, []).append(row)
    return {key: merge(rows, at) for key, rows in groups.items()}


def merge(rows: list[tuple[Any, ...]], at: dict[str, int]) -> dict[str, Any]:
    def states(name: str) -> list[Any]:
        return [row[at[name]] for row in rows if row[at[name]] is not None]

    quantiles, visitors = datasketches.kll_doubles_sketch(200), datasketches.hll_union(12)
    for sketch in states("p95_ms"):
        quantiles.merge(datasketches.kll_doubles_sketch.deserialize(bytes(sketch)))
    for sketch in states("visitors"):
        visitors.update(datasketches.hll_sketch.deserialize(bytes(sketch)))
    totals = [sum(states(name)) if states(name) else None for name in ("requests", "errors", "bytes")]
    return {
        "exact": [*totals, max(states("slowest_ms"), default=None)],
        "p95_ms": None if quantiles.is_empty() else quantiles.get_quantile(0.95),
        "visitors": visitors.get_result().get_estimate(),
    }


def percentile_fits(durations: list[float] | None, estimate: float | None) -> bool:
    """Whether the estimate is near rank 0.95 of the sorted durations; equal values span several ranks."""
    known = [value for value in durations or () if value is not None]
    if not known or estimate is None:
        return not known and estimate is None
    below = sum(value < estimate for value in known) / len(known)
    upto = sum(value <= estimate for value in known) / len(known)
    slack = RANK_TOLERANCE + 1 / len(known)
    return below - slack <= 0.95 <= upto + slack


def compare_ledger(region: JudgedWarehouse, ledger: Path) -> dict[str, int]:
    """Rows acknowledged to the producer against landing. The ledger is NDJSON outside Delta."""
    lines = (
        [json.loads(line) for line in ledger.read_text().splitlines() if line.endswith("}")] if ledger.is_file() else []
    )
    acknowledged = [(line["prefix"], line["first"], line["rows"]) for line in lines if line["what"] == "acknowledged"]
    region.db.execute('CREATE TABLE acknowledged (prefix VARCHAR, "first" BIGINT, rows BIGINT)')
    if acknowledged:
        region.db.executemany("INSERT INTO acknowledged VALUES (?, ?, ?)", acknowledged)
    return region.figures(ACKNOWLEDGED)


def judge(region: JudgedWarehouse, reads: dict[str, int], facts: dict[str, Any], ledger: Path) -> dict[str, Any]:
    """Every figure of one region; wrong ones are listed in `faults`."""
    result: dict[str, Any] = {"region": region.name, "release": region.release, **facts, **reads}
    result |= compare_rows(region) | compare_hours(region) | compare_ledger(region, ledger)
    result["arrived"] = result["landing"] - result["before"]
    return result | {"faults": faults(result)}


def faults(result: dict[str, Any]) -> list[str]:
    """Figures that must be 0 and are not, and figures that are 0 because nothing was compared."""
    must_be_0 = ("gaps", "duplicates", "changed", "wrong_hours", "lost", "doubled", "failed", "torn")
    must_not = ("before", "arrived", "compared", "hours", "acknowledged", "reads", "agents", "agentless", "twins")
    wrong = [f"{name} {result[name]}" for name in must_be_0 if result[name]]
    wrong += [f"{name} 0" for name in must_not if result[name] <= 0]
    if result["reads"] < MIN_READS:
        wrong.append(f"only {result['reads']} reads")
    if result["twins"] != result["twins_in_landing"]:
        wrong.append(
            f"rows equal but for their id: {result['twins_in_landing']} in landing, {result['twins']} promoted"
        )
    return wrong


LINES = (
    ("rows before", "before"), ("arrived during the rollout", "arrived"), ("after", "landing"),
    ("acknowledged to the producer", "acknowledged"), ("lost or doubled on the way in", "lost"),
    ("rows compared, whole", "compared"), ("of them equal but for their id", "twins"), ("with a user agent", "agents"),
    ("without", "agentless"), ("hours compared", "hours"), ("hours that differ", "wrong_hours"), ("gaps", "gaps"),
    ("duplicates", "duplicates"), ("changed rows", "changed"), ("reads through the release", "reads"),
    ("failed reads", "failed"), ("torn reads", "torn"), ("bytes moved", "moved"), ("to migrate everything", "everything"),
)  # fmt: skip


def report(results: list[dict[str, Any]]) -> str:
    """One column per region."""
    rows = [["", *(str(result["region"]) for result in results)]]
    rows += [[label, *(f"{result[key]:,}" for result in results)] for label, key in LINES]
    lines = [f"{row[0]:<30}" + "".join(f"{cell:>16}" for cell in row[1:]) for row in rows]
    lines += [f"WRONG in {result['region']}: {', '.join(result['faults'])}" for result in results if result["faults"]]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="compare the demo's tables with an independent computation")
    parser.add_argument("--region", action="append", required=True, metavar="NAME=WAREHOUSE")
    parser.add_argument("--pipeline", default="web")
    parser.add_argument("--reads", type=Path, required=True, help="results of the reader")
    parser.add_argument("--ledgers", type=Path, required=True, help="directory of the producers' ledgers")
    parser.add_argument("--facts", type=Path, required=True, help="region → before, moved, everything")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds to wait for the last rows")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    reads, facts = json.loads(options.reads.read_text()), json.loads(options.facts.read_text())
    results = []
    with tempfile.TemporaryDirectory(prefix="console-check-") as scratch:
        places = (pair.partition("=") for pair in options.region)
        regions = [JudgedWarehouse(name, warehouse, options.pipeline, scratch) for name, _, warehouse in places]
        for region in regions:  # producers have stopped: landing is complete, and the tables catch up meanwhile
            region.read_landing()
        wait_for_feeds(regions, options.settle)
        for region in regions:
            ledger = options.ledgers / f"{region.name}.ndjson"
            results.append(judge(region, reads[region.name], facts[region.name], ledger))
            region.db.close()
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    print(report(results), flush=True)
    return 1 if any(result["faults"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
