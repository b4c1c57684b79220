"""The judge of every fault: knows a region by its files alone, and computes everything again with its own SQL.

    python judge.py --warehouse DIR --ledger FILE [--whole]     a JSON object of figures on stdout; exit 1 for any fault

Imports nothing of the program that it judges. What was sent stands in a ledger outside Delta; landing is compared with
that, and every table of the live and of the previous release with landing up to the position its own log names.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

POSITION = (1 << 40) - 1  # a feed's number is `epoch << 40 | position`
FEEDS = {"requests": "parse", "by_hour": "hours"}

PARSED = """
SELECT id AS event_id, ts, ts::DATE AS day, payload->>'$.ip' AS ip, (payload->>'$.status')::INT AS status,
  (payload->>'$.bytes')::BIGINT AS bytes, (payload->>'$.ms')::DOUBLE AS ms, payload->>'$.ua' AS user_agent
FROM landed WHERE version <= $position
"""
HOURS = """
SELECT day, date_trunc('hour', ts) AS hour, count(*) AS requests, count(*) FILTER (status >= 400) AS errors,
  sum(bytes)::BIGINT AS bytes, max(ms) AS slowest
FROM (SELECT ts, ts::DATE AS day, (payload->>'$.status')::INT AS status, (payload->>'$.bytes')::BIGINT AS bytes,
  (payload->>'$.ms')::DOUBLE AS ms FROM landed WHERE version <= $position)
GROUP BY ALL
"""
TYPES = {"ts": "ts::TIMESTAMPTZ", "hour": "hour::TIMESTAMPTZ", "day": "day::DATE"}


class Torn(Exception):
    """What a read must never see."""


class Landing:
    """Every row that ever landed, with the version it came in; retention may delete rows, their arrival stays."""

    def __init__(self, warehouse: Path) -> None:
        self.path = warehouse / "landing"
        self.version = -1
        self.rewritten = 0
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'")
        self.db.execute("CREATE TABLE landed (version BIGINT, id VARCHAR, ts TIMESTAMPTZ, payload VARCHAR)")

    def advance(self) -> None:
        """Read the commits that are new; each as a whole or not at all."""
        while (log := self.path / "_delta_log" / f"{self.version + 1:020}.json").exists():
            actions = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
            added = [a["add"] for a in actions if a.get("add", {}).get("dataChange")]
            removed = [a for a in actions if a.get("remove", {}).get("dataChange")]
            if removed:
                self.rewritten += 1  # a retention delete: what it keeps is rewritten, nothing arrives
            elif added:
                files = [str(self.path / add["path"]) for add in added]
                query = "INSERT INTO landed SELECT $version, id, ts::TIMESTAMPTZ, payload FROM read_parquet($files)"
                self.db.execute(query, {"version": self.version + 1, "files": files})
            self.version += 1


class Region:
    """One warehouse and pipeline, through its files."""

    def __init__(self, warehouse: Path, pipeline: str = "web") -> None:
        self.warehouse = warehouse
        self.releases = warehouse / "_console" / pipeline / "releases"
        self.landing = Landing(warehouse)
        self._tables: dict[str, DeltaTable] = {}

    def stored_releases(self) -> dict[str, list[dict[str, Any]]]:
        """Releases by state, from one snapshot."""
        results: dict[str, list[dict[str, Any]]] = {}
        for row in DeltaTable(str(self.releases)).to_pyarrow_table().to_pylist():
            results.setdefault(row["state"], []).append(row)
        return results

    def table(self, release: dict[str, Any], name: str) -> DeltaTable:
        return self._opened(str(self.warehouse / self.path(release, name)))

    def _opened(self, path: str) -> DeltaTable:
        if path in self._tables:
            self._tables[path].update_incremental()
        else:
            self._tables[path] = DeltaTable(path)
        return self._tables[path]

    def position(self, table: DeltaTable, name: str, release: dict[str, Any]) -> int:
        """How far the table's own log says it has read its source; a feed that moved to a rebuilt source names that."""
        app = f"live/{table.metadata().id}/{FEEDS[name]}"
        feed = next(feed for feed in json.loads(release["manifest"])["feeds"] if feed["target"] == name)
        if feed.get("moved"):
            app += f"/{self.table(release, feed['source']).metadata().id}"
        number = table.transaction_version(app)
        if number is None:
            raise Torn(f"{name}: no position in its log")
        return int(number) & POSITION

    def path(self, release: dict[str, Any], name: str) -> str:
        tables = json.loads(release["manifest"])["tables"]
        return str(next(s["version"]["path"] for s in tables if s["table"]["name"] == name))

    def read(self, release: dict[str, Any], live: dict[str, Any] | None = None) -> dict[str, int]:
        """Both tables of a release against landing, each at the landing position that it stands for.

        live    the live release, which feeds what the two share
        raises  Torn with the first differences
        """
        feeding = live if live and self.path(live, "by_hour") == self.path(release, "by_hour") else release
        requests, hours = self.table(release, "requests"), self.table(release, "by_hour")
        source, reached = self.table(feeding, "requests"), self.position(hours, "by_hour", feeding)
        if reached > source.version():
            source.update_incremental()  # it was read a moment earlier
        # only now: the live release's own table is `source` as well, and what is compared must be what has this position
        at = self.position(requests, "requests", release)
        older = DeltaTable(str(source.table_uri).removeprefix("file://"), version=reached)
        self.landing.advance()
        named = {c["name"] for s in json.loads(release["manifest"])["tables"] for c in s["table"]["columns"]}
        rows = self._compare("requests", requests, PARSED, at, named)
        hours_at = self.position(older, "requests", feeding)
        by_hour = self._compare("by_hour", hours, HOURS, hours_at, named)
        return {"position": at, "hours_at": hours_at, "rows": rows, "hours": by_hour}

    def _compare(self, name: str, table: DeltaTable, truth: str, position: int, named: set[str]) -> int:
        """Multisets of whole rows; returns how many there are. An aggregate's states are merged here.

        named  columns that the release promises
        """
        db = self.landing.db
        values = [field.name for field in table.schema().fields]
        files = [uri.removeprefix("file://") for uri in table.file_uris()]
        columns = [c[0] for c in db.execute(f"DESCRIBE ({truth.replace('$position', '0')})").fetchall()]
        if name == "requests":
            missing = (set(columns) & named) - set(values)
            columns = [c for c in columns if c in values]
            text = ", ".join(TYPES.get(c, c) for c in columns)
            text = f"SELECT {text} FROM stored"
        else:
            states = {name.split("__")[0]: name for name in values}
            missing = set(columns) - set(states)
            merged = [f"{'max' if c == 'slowest' else 'sum'}({states[c]})" for c in columns[2:] if c in states]
            text = f"SELECT day::DATE, hour::TIMESTAMPTZ, {', '.join(merged)} FROM stored GROUP BY ALL"
        if missing:
            raise Torn(f"{name}: has no {sorted(missing)}")
        stored = "read_parquet($files, union_by_name = true, hive_partitioning = true, hive_types = {'day': DATE})"
        db.execute(f"CREATE OR REPLACE TEMP TABLE stored AS SELECT * FROM {stored}", {"files": files})
        db.execute(f"CREATE OR REPLACE TEMP TABLE actual AS {text}")
        wanted = f"SELECT {', '.join(columns)} FROM ({truth})"
        db.execute(f"CREATE OR REPLACE TEMP TABLE wanted AS {wanted}", {"position": position})
        lost = db.execute("SELECT count(*) FROM (FROM wanted EXCEPT ALL FROM actual)").fetchall()[0][0]
        extra = db.execute("SELECT count(*) FROM (FROM actual EXCEPT ALL FROM wanted)").fetchall()[0][0]
        if lost or extra:
            example = db.execute("(FROM wanted EXCEPT ALL FROM actual) LIMIT 1").fetchall()
            example += db.execute("(FROM actual EXCEPT ALL FROM wanted) LIMIT 1").fetchall()
            raise Torn(f"{name}: {lost} rows missing, {extra} too many at landing {position}; {example}")
        return int(db.execute("SELECT count(*) FROM actual").fetchall()[0][0])


def arrivals(landing: Landing, ledger: Path) -> dict[str, int]:
    """What was sent against what landed: rows stored by the producer's account, and what is wrong with them."""
    db, sent, stored = landing.db, {}, set()
    for line in ledger.read_text().splitlines():
        data = json.loads(line)
        if data["what"] == "sent":
            sent[data["batch"]] = data["rows"]
        else:
            stored.add(data["batch"])
    db.execute("CREATE OR REPLACE TEMP TABLE sent (id VARCHAR, ts TIMESTAMPTZ, payload VARCHAR, stored BOOLEAN)")
    rows = [(*row, batch in stored) for batch, rows in sent.items() for row in rows]
    db.executemany("INSERT INTO sent VALUES (?, ?, ?, ?)", rows)
    compared = """
    WITH stored_rows AS (SELECT id, ts, payload, count(*) AS n FROM landed GROUP BY ALL),
      sent_rows AS (SELECT id, ts, payload, count(*) AS n, bool_and(stored) AS stored FROM sent GROUP BY ALL)
    SELECT count(*) FILTER (coalesce(stored_rows.n, 0) < sent_rows.n AND sent_rows.stored),
      count(*) FILTER (stored_rows.n > sent_rows.n), count(*) FILTER (sent_rows.n IS NULL)
    FROM sent_rows FULL JOIN stored_rows ON sent_rows.id = stored_rows.id AND sent_rows.ts IS NOT DISTINCT FROM stored_rows.ts AND sent_rows.payload = stored_rows.payload
    """
    lost, duplicated, unexpected = db.execute(compared).fetchall()[0]
    return {"sent": len(rows), "lost": lost, "duplicated": duplicated, "unexpected": unexpected}


def judge(warehouse: Path, ledger: Path, *, whole: bool) -> dict[str, Any]:
    """All figures; `faults` lists what is wrong. whole: every feed must have reached the end of landing."""
    region, faults, result = Region(warehouse), [], {}
    stored = region.stored_releases()
    if len(stored.get("live", ())) != 1:
        faults.append(f"{len(stored.get('live', ()))} live releases")
    for state in ("live", "previous"):
        for release in stored.get(state, ()):
            try:
                figures = region.read(release, stored.get("live", [None])[0])
            except Torn as torn:
                faults.append(f"{release['id']}: {torn}")
                continue
            result[state] = {"release": release["id"], **figures}
            late = region.landing.db.execute(
                "SELECT count(*) FROM landed WHERE version > $1", [min(figures["position"], figures["hours_at"])]
            ).fetchall()[0][0]
            if whole and late:
                faults.append(f"{release['id']}: {late} rows of landing have not arrived")
    region.landing.advance()
    result |= arrivals(region.landing, ledger)
    faults += [f"{name} {result[name]}" for name in ("lost", "duplicated", "unexpected") if result[name]]
    if not result["sent"] or "live" not in result:
        faults.append("nothing was looked at")
    return result | {"faults": faults}


def main() -> int:
    parser = argparse.ArgumentParser(description="compare a region with what was sent to it")
    parser.add_argument("--warehouse", type=Path, required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--whole", action="store_true", help="every feed must have reached the end of landing")
    asked = parser.parse_args()
    started = time.monotonic()
    result = judge(asked.warehouse, asked.ledger, whole=asked.whole)
    print(json.dumps(result | {"seconds": round(time.monotonic() - started, 2)}, default=str))
    return 1 if result["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
