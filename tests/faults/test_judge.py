"""The judge itself: an intact region passes, and each kind of damage is reported."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tests.faults import judge
from tests.faults.world import Ledger
from tests.life.region import LANDING

pytestmark = pytest.mark.faults
HERE = Path(__file__).resolve().parent
AT = datetime(2026, 11, 3, 10, 30, tzinfo=UTC)
HOUR, DAY = datetime(2026, 11, 3, 10, tzinfo=UTC), date(2026, 11, 3)
TIME = pa.timestamp("us", "UTC")
REQUESTS = pa.schema(
    [("event_id", pa.string()), ("ts", TIME), ("day", pa.date32()), ("ip", pa.string()), ("status", pa.int32()),
     ("bytes", pa.int64()), ("ms", pa.float64())]
)  # fmt: skip
HOURS = pa.schema(
    [("day", pa.date32()), ("hour", TIME), ("requests__count", pa.int64()), ("errors__count", pa.int64()),
     ("bytes__sum", pa.int64()), ("slowest__max", pa.float64())]
)  # fmt: skip


def landed(n: int) -> dict[str, Any]:
    payload = {"ip": "192.0.2.1", "status": 404 if n == 2 else 200, "bytes": 10 * n, "ms": n / 2}
    return {"id": f"e{n}", "ts": AT, "payload": json.dumps(payload)}


def parsed(n: int) -> dict[str, Any]:
    return {
        "event_id": f"e{n}",
        "ts": AT,
        "day": DAY,
        "ip": "192.0.2.1",
        "status": 404 if n == 2 else 200,
        "bytes": 10 * n,
        "ms": n / 2,
    }


def hour(*numbers: int) -> dict[str, Any]:
    return {"day": DAY, "hour": HOUR, "requests__count": len(numbers), "errors__count": numbers.count(2),
            "bytes__sum": sum(10 * n for n in numbers), "slowest__max": max(numbers) / 2}  # fmt: skip


def put(path: Path, rows: list[dict[str, Any]], schema: pa.Schema, feed: str = "", position: int = 0) -> None:
    """Append rows and, for a feed, the position that they bring its table to."""
    if feed and not path.exists():
        write_deltalake(str(path), pa.Table.from_pylist([], schema), partition_by=["day"])
    once = None
    if feed:
        app = f"live/{DeltaTable(str(path)).metadata().id}/{feed}"
        once = CommitProperties(app_transactions=[Transaction(app, 1 << 40 | position)])
    write_deltalake(str(path), pa.Table.from_pylist(rows, schema), mode="append", commit_properties=once)


@pytest.fixture
def region(tmp_path: Path) -> Path:
    """Three rows in two commits, parsed and counted, in one live release; and the ledger of them."""
    warehouse, ledger = tmp_path / "warehouse", Ledger(tmp_path / "ledger.ndjson")
    for batch in ([1, 2], [3]):
        rows = [landed(n) for n in batch]
        ledger.sent(f"b{batch}", rows)
        put(warehouse / "landing", rows, LANDING)
        ledger.stored(f"b{batch}")
    put(warehouse / "requests/a-1", [parsed(n) for n in (1, 2, 3)], REQUESTS, "parse", 1)
    put(warehouse / "by_hour/b-1", [hour(1, 2), hour(3)], HOURS, "hours", 1)
    tables = [
        {
            "table": {"name": name, "columns": [{"name": field.name.split("__")[0]} for field in schema]},
            "version": {"path": path},
        }
        for name, path, schema in (("requests", "requests/a-1", REQUESTS), ("by_hour", "by_hour/b-1", HOURS))
    ]
    feeds = [{"source": "landing", "target": "requests"}, {"source": "requests", "target": "by_hour"}]
    row = {"id": "r1", "state": "live", "manifest": json.dumps({"tables": tables, "feeds": feeds})}
    write_deltalake(str(warehouse / "_console/web/releases"), pa.Table.from_pylist([row]))
    return tmp_path


def judged(region: Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, str(HERE / "judge.py"), "--warehouse", str(region / "warehouse")]
    command += ["--ledger", str(region / "ledger.ndjson"), "--whole"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_whole_region_passes_and_what_was_compared_is_reported(region: Path) -> None:
    code, verdict = judged(region)
    assert (code, verdict["faults"]) == (0, [])
    assert (verdict["sent"], verdict["live"]["rows"], verdict["live"]["hours"], verdict["live"]["position"]) == (
        3,
        3,
        1,
        1,
    )


def second_live(place: Path) -> None:
    releases = str(place / "_console/web/releases")
    row = {**DeltaTable(releases).to_pyarrow_table().to_pylist()[0], "id": "r2"}
    write_deltalake(releases, pa.Table.from_pylist([row]), mode="append")


WRONG: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a row twice": (lambda place: put(place / "requests/a-1", [parsed(1)], REQUESTS), "0 rows missing, 1 too many"),
    "a row lost": (lambda place: DeltaTable(str(place / "requests/a-1")).delete("event_id = 'e2'"), "1 rows missing, 0 too many"),
    "another value": (
        lambda place: DeltaTable(str(place / "requests/a-1")).update(updates={"bytes": "7"}, predicate="event_id = 'e2'"),
        "1 rows missing, 1 too many",
    ),
    "an hour counted twice": (lambda place: put(place / "by_hour/b-1", [hour(3)], HOURS), "by_hour: 1 rows missing, 1 too many"),
    "a row stored twice": (lambda place: put(place / "landing", [landed(3)], LANDING), "duplicated 1"),
    "a row that nobody sent": (lambda place: put(place / "landing", [landed(9)], LANDING), "unexpected 1"),
    "rows not yet followed": (lambda place: put(place / "landing", [landed(4)], LANDING), "1 rows of landing have not arrived"),
    "two live releases": (second_live, "2 live releases"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_each_way_of_not_being_whole_is_reported(region: Path, wrong: str) -> None:
    spoil, words = WRONG[wrong]
    spoil(region / "warehouse")
    code, verdict = judged(region)
    assert code == 1
    assert any(words in fault for fault in verdict["faults"]), verdict


def test_a_table_that_moves_while_it_is_looked_at_is_judged_as_of_one_version(
    region: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, position, numbers = region / "warehouse", judge.Region.position, count(4)

    def then_a_row_arrives(self: judge.Region, table: DeltaTable, name: str, release: dict[str, Any]) -> int:
        latest = position(self, table, name, release)
        if name == "requests":
            number = next(numbers)
            put(warehouse / "landing", [landed(number)], LANDING)
            put(warehouse / "requests/a-1", [parsed(number)], REQUESTS, "parse", number - 2)
        return latest

    monkeypatch.setattr(judge.Region, "position", then_a_row_arrives)
    seen = judge.Region(warehouse)
    live = seen.stored_releases()["live"][0]
    assert seen.read(live)["rows"] == 3
    assert seen.read(live)["rows"] > 3


def test_a_row_that_was_told_to_be_stored_and_is_not_is_lost(region: Path) -> None:
    ledger = Ledger(region / "ledger.ndjson")
    ledger.sent("b9", [landed(9)])
    assert judged(region)[1]["faults"] == []  # sent, but nobody said that it was stored
    ledger.stored("b9")
    assert judged(region)[1]["faults"] == ["lost 1"]


@pytest.mark.parametrize("judge", ["judge.py", "reader.py"])
def test_the_judges_know_nothing_of_what_they_judge(judge: str) -> None:
    script = (
        f"import runpy, sys; sys.path.insert(0, {str(HERE)!r}); runpy.run_path({str(HERE / judge)!r}, run_name='seen')"
    )
    code = f"{script}; assert not any(name.partition('.')[0] == 'console' for name in sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
