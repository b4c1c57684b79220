"""Expectations on real Spark and Delta: a bad day stops its batch before the commit, a warning stands at the gate, and live
rows of the version that is being built are held to the same. Numbers are DuckDB's, over the landing table.

The agent runs in this process; one JVM for all tests.
"""

import json
import re
from collections.abc import AsyncIterator, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from console.agent.execution import batch
from console.errors import CheckFailed, FeedStopped
from console.model.codec import encode
from console.model.event import BatchDone
from console.model.plan import Plan
from console.model.status import Status
from tests.agent.test_resilience import Region, files
from tests.life.region import LANDING, multiset

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
CANARY = "s3cr3t"  # statuses of the rows that `Region` spoils
STATUS = ("status: string", "get_json_object(payload, '$.status') AS status")
KNOWN = "{accepted_values: {status: ['200', '304', '404', '500']}"
TRUTH = "SELECT coalesce(CAST(ts AS DATE)::VARCHAR, ''), count(*) FROM landing WHERE payload LIKE '%s3cr3t%' GROUP BY 1"
LATER, NEWEST = (datetime(2026, 11, day, 12, tzinfo=UTC) for day in (2, 4))


class ExpectingRegion(Region):
    """A region to whose table a column and its expectations are added."""

    async def expecting(self, place: Path, *rules: str) -> Plan:
        root = files(place / str(self._number + 1), *STATUS)
        with (root / "tables" / "requests.yaml").open("a") as file:
            file.write("cluster_by: [id]\nexpectations:\n" + "".join(f"  - {rule}\n" for rule in rules))
        self._number += 1
        self.install("web", root)
        plan = await self.plan("web")
        assert not plan.refusals, plan.refusals
        return plan

    def arrives(self, status: str, at: datetime = LATER) -> str:
        """A live row with this status; returns its id."""
        row = {**self._next(), "ts": at, "payload": json.dumps({"ip": "192.0.2.9", "status": status})}
        write_deltalake(str(self.warehouse / "landing"), pa.Table.from_pylist([row], LANDING), mode="append")
        return str(row["id"])

    def remembered(self) -> bytes:
        """All that the region stores besides rows, and what it answers about its rollout."""
        stored = b"".join(path.read_bytes() for path in (self.warehouse / "_console").rglob("*") if path.is_file())
        return stored + json.dumps(encode(self.controller.recorder.status)).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ExpectingRegion]:
    live = ExpectingRegion(tmp_path_factory.mktemp("expecting"))
    try:
        assert live.carry(await live.planned(live.root / "first")).shown == "awaiting-confirmation"
        live.promote()
        yield live
    finally:
        live.service.agent.stop()
        await live.close()


def refused_rows(why: str) -> int:
    match = re.search(r"`status is one of 4 values`: ([\d,]+) rows? fails? ", why)
    assert match, why
    return int(match[1].replace(",", ""))


def named(why: str) -> set[str]:
    return set(re.findall(r"id=(\w+)", why))


def stands_at(status: Status, ids: Collection[str]) -> None:
    """A rollout that a bad day has stopped."""
    assert status.held == "failed"
    assert "was not committed, since rows fail expectations" in status.why
    assert 0 < refused_rows(status.why) <= len(ids)
    assert named(status.why)
    assert named(status.why) <= set(ids)
    assert "severity: warn" in status.hint


async def test_a_bad_day_stops_its_batch_before_the_commit_and_a_killed_agent_says_it_again(
    region: ExpectingRegion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent dies, as far as its thread can, while it looks for the rows of a batch that was refused."""
    plan = await region.expecting(tmp_path, KNOWN + "}")
    first = batch.not_as_expected

    def dies(*_: Any) -> None:
        monkeypatch.setattr(batch, "not_as_expected", first)
        raise MemoryError

    monkeypatch.setattr(batch, "not_as_expected", dies)
    assert region.carry(plan).held == "failed"
    region.controller.control("retry", "ada")
    stands_at(region.stands(), region.bad)
    whole = sum(number for _, number in region.truth(TRUTH))
    assert refused_rows(region.controller.recorder.status.why) <= whole
    done = region.controller.recorder.events(BatchDone)
    assert len({each.position for each in done}) == len(done)
    assert {row[0] for row in region.built()} & region.bad == set()
    assert CANARY.encode() not in region.remembered()
    region.discard()


async def test_at_the_gate_each_expectation_is_a_check_with_duckdbs_numbers_and_a_warning_is_for_a_person(
    region: ExpectingRegion, tmp_path: Path
) -> None:
    rules = (
        KNOWN + ", severity: warn}",
        "{not_null: [id, ts], severity: warn}",
        "length(id) > 1",
        "{unique: [id]}",
        "{unique: [ip]}",
        "{row_count: {min: 100%}, severity: warn}",
        "{freshness: 1s, severity: warn}",
    )
    status = region.carry(await region.expecting(tmp_path, *rules))
    assert status.shown == "awaiting-confirmation", status.why
    checks = {check.check.removeprefix("expects "): check for check in status.checks}
    known = checks["status is one of 4 values"]
    assert known.ok is None
    days = dict(region.truth(TRUTH))
    assert known.detail.startswith(f"warn: {sum(days.values())} rows fail (")
    assert all(f"{day or 'no day'}: {number}" in known.detail for day, number in sorted(days.items())[:3])
    assert named(known.detail) == region.bad
    ((untimed,),) = region.truth("SELECT count(*) FROM landing WHERE ts IS NULL")
    assert checks["ts is not null"].detail.startswith(f"warn: {untimed} row")
    ((total,),) = region.truth("SELECT count(*) FROM landing")
    for name in ("id is not null", "length(id) > 1", "id unique within a day"):
        assert (checks[name].ok, checks[name].detail) == (True, f"none of {total:,} rows fails")
    assert checks["rows at least 1 × the day before"].ok is None
    assert checks["newest row within 1 s"].ok is None
    ip = "json_extract_string(payload, '$.ip')"
    per_day = f"SELECT count(*) - count(DISTINCT coalesce({ip}, '-')) AS n FROM landing GROUP BY CAST(ts AS DATE)"
    ((twice,),) = region.truth(f"SELECT sum(n)::BIGINT FROM ({per_day})")
    repeated = checks["ip unique within a day"]
    assert repeated.ok is False
    assert repeated.detail.startswith(f"{twice:,} rows fail (")
    assert 5 <= len(named(repeated.detail)) <= 10
    assert "192.0.2" not in repeated.detail, "an address is no key of the table"
    with pytest.raises(CheckFailed, match="ip unique within a day"):
        region.promote()
    assert CANARY.encode() not in region.remembered()
    assert any("rows of" not in line and "`status is one of 4 values`" in line for line in status.log)
    region.discard()


async def test_a_live_row_that_is_not_as_expected_stops_the_version_that_is_built_and_never_the_live_one(
    region: ExpectingRegion, tmp_path: Path
) -> None:
    plan = await region.expecting(tmp_path, "status <> 'boom'")
    status = region.carry(plan)
    assert status.shown == "awaiting-confirmation", status.why
    bad = region.arrives("boom")
    region.controller.feeds.follower.align("web").result(120)
    with pytest.raises(FeedStopped) as stopped:
        region.promote()
    assert stopped.value.code == "E_EXPECTATION"
    assert "`status <> 'boom'`: 1 row fails (2026-11-02: 1), at id=" + bad in str(stopped.value)
    assert bad not in {row[0] for row in region.built()}
    live = region.controller.live().table("requests")
    assert live is not None
    rows = DeltaTable(str(region.warehouse / live.version.path)).to_pyarrow_table(columns=["id", "day"]).to_pylist()
    counted, truth = multiset([(row["id"], row["day"]) for row in rows]), multiset(region.wanted())
    assert (counted - truth, truth - counted) == ({}, {})
    region.discard()


@pytest.mark.soak
async def test_a_bad_newest_day_of_one_table_is_found_before_a_second_batch_of_another_is_carried(
    region: ExpectingRegion, tmp_path: Path
) -> None:
    bad = region.arrives("bust", NEWEST)
    root = files(tmp_path, *STATUS)
    table = "time: ts\ncolumns: {id: string, ts: timestamp, status: string}\ncluster_by: [id]\nexpectations: [status <> 'bust']\n"
    (root / "tables" / "visits.yaml").write_text(table)
    (root / "materializations" / "visit.sql").write_text(
        f"/* into: visits */\nSELECT id, ts, {STATUS[1]} FROM landing\n"
    )
    region.install("web", root)
    status = region.carry(await region.plan("web"))
    assert status.held == "failed"
    assert f"`status <> 'bust'`: 1 row fails (2026-11-04: 1), at id={bad}" in status.why
    (rehearsed,) = region.controller.recorder.events(BatchDone)
    assert (rehearsed.step, rehearsed.position < rehearsed.of) == ("backfill/requests/parse", True)
    region.discard()


async def test_a_live_version_takes_every_row_whatever_was_expected_of_it(
    region: ExpectingRegion, tmp_path: Path
) -> None:
    """Last, since it promotes."""
    status = region.carry(await region.expecting(tmp_path, "status <> 'bang'"))
    assert status.shown == "awaiting-confirmation", status.why
    region.promote()
    late = region.arrives("bang")
    region.controller.feeds.follower.align("web").result(120)
    assert late in {row[0] for row in region.built()}
