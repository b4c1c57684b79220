"""A region whose warehouse is a bucket: its project, commands of a console, a producer beside them, and the independent check."""

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from console.release import open_release
from tests.life.region import SHORT_LIVED
from tests.objects.server import BUCKET, client

FILES = {
    "plans/web/pipeline.yaml": "name: web\ndescription: requests\n",
    "plans/web/tables/landing.yaml": (
        "kind: landing\nmanaged: false\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
    ),
    "plans/web/tables/requests.yaml": (
        "kind: append\ntime: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date}\n"
    ),
    "plans/web/tables/per_day.yaml": (
        "kind: aggregate\ntime: day\npartition_by: [day]\ncolumns: {day: date, requests: bigint}\n"
    ),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT id, ts, to_date(ts) AS day FROM landing\n"
    ),
    "plans/web/materializations/count_days.sql": (
        "/*\ninto: per_day\n*/\nSELECT day, count(*) AS requests FROM requests GROUP BY day\n"
    ),
}
# a change that computes every row of `requests` anew
CHANGED = {
    "plans/web/tables/requests.yaml": (
        "kind: append\ntime: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, status: int}\n"
    ),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT id, ts, to_date(ts) AS day,"
        " CAST(get_json_object(payload, '$.status') AS INT) AS status FROM landing\n"
    ),
}
# as FILES, and lines land through console; what is written below is left out of the region's own tables
MANAGED = {
    **FILES,
    "plans/web/tables/landing.yaml": (
        "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
    ),
    "plans/web/copies/all_days.sql": (
        "/*\ninto: all_days\nmode: replace\n*/\nSELECT day, sum(requests) AS requests FROM per_day GROUP BY day\n"
    ),
    "plans/web/copies/runs.sql": "/*\ninto: runs\nmode: append\n*/\nSELECT count(*) AS n FROM requests\n",
    "plans/web/sinks/days.sql": (
        "/*\npath: exports/days\nformat: ndjson\n*/\nSELECT day, sum(requests) AS requests FROM per_day GROUP BY day\n"
    ),
}
EQUAL = {"gaps": 0, "duplicates": 0, "other times": 0}
SECONDS = 120.0  # for what an agent does by itself
LOOK_SECONDS = 1.0  # a look reads every row through the server
COMMAND_SECONDS = 900.0
ENDING_SECONDS = 60.0
NOON = datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.UTC)


@dataclass(slots=True, kw_only=True)
class Region:
    """warehouse: its URI;  store: deltalake's options around any proxy;  environment: of consoles and agents
    more: lines of its file in the inventory;  spark: its `spark` there
    """

    home: Path
    warehouse: str
    store: Mapping[str, str]
    environment: Mapping[str, str]
    more: str = ""
    spark: Mapping[str, object] = field(default_factory=lambda: {"master": "local[1]", "conf": SHORT_LIVED})
    sent: int = 0
    _followers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def write(self, files: Mapping[str, str] = FILES) -> None:
        region = f"warehouse: {self.warehouse}\n{self.more}spark: {json.dumps(self.spark)}\n"
        for name, text in {**files, "regions/us.yaml": region}.items():
            path = self.home / "project" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def produce(self, rows: int, days: int = 3) -> None:
        """Append rows to the landing table, one commit, spread over days."""
        numbers = range(self.sent, self.sent + rows)
        times = [NOON + datetime.timedelta(days=n % days, seconds=n) for n in numbers]
        table = pa.table(
            {
                "id": [f"r{n}" for n in numbers],
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "payload": [json.dumps({"status": 200 + n % 5}) for n in numbers],
            }
        )
        write_deltalake(f"{self.warehouse}/landing", table, mode="append", storage_options=dict(self.store))
        self.sent += rows

    def lines(self, rows: int, days: int = 3) -> Path:
        """A file with the next rows as lines of JSON, for `console ingest`."""
        numbers = range(self.sent, self.sent + rows)
        events = [
            {"id": f"r{n}", "ts": (NOON + datetime.timedelta(days=n % days, seconds=n)).isoformat(), "payload": json.dumps({"status": 200 + n % 5})}
            for n in numbers
        ]  # fmt: skip
        file = self.home / f"events-{self.sent}.ndjson"
        file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
        self.sent += rows
        return file

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "console.main", *words]

    def attempt(self, *words: str, seconds: float = COMMAND_SECONDS) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*words), cwd=self.home / "project", env=dict(self.environment),
            capture_output=True, text=True, check=False, timeout=seconds,
        )  # fmt: skip

    def console(self, *words: str, code: int = 0) -> str:
        done = self.attempt(*words)
        assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.log()}"
        return done.stdout

    def log(self) -> str:
        return "\n".join(path.read_text()[-8000:] for path in (self.home / "state" / "log").glob("agent-*.log"))

    def follow(self) -> None:
        """An agent in the foreground, as a service would start it."""
        command = [sys.executable, "-m", "console.main", "follow", "--region", "us"]
        with (self.home / "follow.log").open("ab") as out:
            self._followers.append(
                subprocess.Popen(command, cwd=self.home / "project", env=dict(self.environment), stdout=out, stderr=out)
            )

    def running(self) -> list[int]:
        """The agents of this warehouse, by their command lines."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"console.agent" in words and self.warehouse.encode() in words:
                    found.append(int(entry.name))
        return found

    def end(self) -> None:
        """End every agent of this warehouse."""
        until = time.monotonic() + ENDING_SECONDS
        for pid in self.running():
            for number in (signal.SIGCONT, signal.SIGTERM):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        while (left := self.running()) and time.monotonic() < until:
            for process in self._followers:
                process.poll()
            time.sleep(0.2)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._followers:
            process.wait(ENDING_SECONDS)

    def objects(self, path: str) -> list[str]:
        """Keys below a folder of the warehouse."""
        store = client(self.store["AWS_ENDPOINT_URL"], self.store)
        bucket, _, prefix = self.warehouse.removeprefix("s3://").partition("/")
        assert bucket == BUCKET
        return [entry["path"] for entry in store.list(f"{prefix}/{path}").collect()]

    def text(self, path: str) -> str:
        """The content of an object."""
        store = client(self.store["AWS_ENDPOINT_URL"], self.store)
        return bytes(store.get(f"{self.warehouse.removeprefix(f's3://{BUCKET}/')}/{path}").bytes()).decode()

    def table(self, path: str) -> DeltaTable:
        return DeltaTable(f"{self.warehouse}/{path}", storage_options=dict(self.store))

    def paths(self, state: str = "live") -> dict[str, str]:
        """Of the release in a state, by the region's own table: logical name → version path."""
        return {
            each["table"]["name"]: each["version"]["path"]
            for each in json.loads(self._stored("manifest", state))["tables"]
        }

    def live(self) -> str:
        """Id of the live release, by the region's own table."""
        return self._stored("id", "live")

    def _stored(self, column: str, state: str) -> str:
        releases = self.table("_console/web/releases")
        found = QueryBuilder().register("t", releases).execute(f"SELECT {column} FROM t WHERE state = '{state}'")
        (value,) = found.read_all().column(column).to_pylist()
        return str(value)

    def differing(self, state: str = "live") -> dict[str, int]:
        """Gaps and duplicates of a release against its landing table, by DuckDB: {"gaps": 0, "duplicates": 0, …}."""
        paths = self.paths(state)
        db = duckdb.connect()
        for name in ("landing", "requests"):
            db.register(name, self.table(paths[name]).to_pyarrow_table())
        one = "SELECT count(*) FROM"
        counts = {
            "rows": f"{one} requests",  # of the same moment as the others
            "gaps": f"{one} (SELECT id FROM landing EXCEPT ALL SELECT id FROM requests)",
            "duplicates": f"{one} (SELECT id FROM requests EXCEPT ALL SELECT id FROM landing)",
            "other times": f"{one} requests r JOIN landing l USING (id) WHERE r.ts <> l.ts OR r.day <> CAST(l.ts AT TIME ZONE 'UTC' AS DATE)",
        }
        return {name: db.sql(query).fetchall()[0][0] for name, query in counts.items()}


def becomes(region: Region, rows: int, state: str = "live") -> None:
    """Wait until a release holds so many rows, and see that they are the landing table's."""
    until = time.monotonic() + SECONDS
    while (found := region.differing(state))["rows"] < rows and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    assert found == {**EQUAL, "rows": rows}


def read_by_others(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release `web-2`, by the package that needs no agent."""
    for name, value in region.store.items():
        monkeypatch.setenv(name, value)
    opened = open_release(warehouse=region.warehouse, pipeline="web")
    rows = opened.arrow("requests", where="status IS NOT NULL")
    assert (opened.id, rows.num_rows, set(rows["status"].to_pylist())) == ("r2", region.sent, set(range(200, 205)))


def tidied(region: Region) -> None:
    """The previous release is dropped, and small files of the live one are put together beside its feeds."""
    dropped = region.paths("previous")["requests"]
    assert dropped in region.console("cleanup", "--previous", "--yes", "--regions", "us")
    assert region.objects(dropped) == []
    for _ in range(2):  # small files of one day
        region.produce(5, days=1)
        becomes(region, region.sent)
    before = len(region.table(region.paths()["requests"]).file_uris())
    maintained = region.console("maintain", "--region", "us", "--small-files", "5")
    assert "requests: compacted: day=2026-11-01: " in maintained, maintained
    assert " files to 1 in version" in maintained
    assert "requests: vacuumed: " in maintained
    assert len(region.table(region.paths()["requests"]).file_uris()) <= before - 4
    region.produce(40)
    becomes(region, region.sent)


def environment(home: Path, store: Mapping[str, str], run: Path) -> dict[str, str]:
    """run: for sockets, whose path may have some hundred characters"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own = {
        "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9",
        "CONSOLE_HOME": str(home),
        "XDG_RUNTIME_DIR": str(run),
    }
    jars = str(Path(__file__).resolve().parents[2] / ".console" / "jars")
    return {
        **kept,
        **store,
        **own,
        "CONSOLE_JARS": os.environ.get("CONSOLE_JARS", jars),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
