"""A wrong value on one day of fourteen, a row lost and one duplicated: all three close the gate, and none of the differing
values is in anything that is stored, printed or logged. Real Spark; the agent runs in this process."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from console.agent.execution import validation
from console.agent.store import log
from console.model.codec import encode
from console.model.compared import PAGE, ROWS, ComparedColumn
from console.model.event import Checked
from tests.agent.test_resilience import Region
from tests.life import region as life
from tests.reports.runs import documents

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
CANARY = "canary-8d1f"  # an address that three rows have
BAD, LOST, TWICE = (f"2026-11-{day:02}" for day in (5, 8, 11))


class Planted(Region):
    """Fourteen days; of each of the three that go wrong one row holds the canary."""

    def _spoil(self) -> None:
        days = [life.FIRST_DAY + timedelta(days=n, hours=1) for n in range(14)]
        payload = json.dumps({"ip": "192.0.2.1"})
        some = [{"id": f"d{n}", "ts": days[n % 14] + timedelta(seconds=n), "payload": payload} for n in range(14 * 20)]
        marked = [{"id": f"canary{n}", "ts": days[n], "payload": json.dumps({"ip": CANARY})} for n in (4, 7, 10)]
        write_deltalake(
            str(self.warehouse / "landing"), pa.Table.from_pylist([*some, *marked], life.LANDING), mode="append"
        )
        self.bad = set()

    def checks(self) -> dict[str, Checked]:
        return {check.check: check for check in self.controller.recorder.status.checks}

    def console(self, *words: str) -> str:
        """What the command prints, on both streams."""
        command = [sys.executable, "-m", "console.main", *words, "--project", str(self.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout + done.stderr


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Planted]:
    live = Planted(tmp_path_factory.mktemp("compared"))
    try:
        assert live.carry(await live.planned(live.root / "first")).shown == "awaiting-confirmation"
        live.promote()
        yield live
    finally:
        live.service.agent.stop()
        await live.close()


def spoil(table: str) -> None:
    """What a wrong cast, a lost batch and a repeated one leave behind."""
    new = DeltaTable(table)
    new.update(updates={"ip": "substr(ip, 1, 9)"}, predicate=f"day = '{BAD}'")
    new.delete("id = 'canary7'")
    row = DeltaTable(table).to_pyarrow_table(filters=[("id", "=", "canary10")])
    assert row.num_rows == 1
    write_deltalake(table, row, mode="append")


@pytest.fixture
def planted(region: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defects in the new version, from the moment at which both are brought to one position."""
    aligned, spoiled = validation.aligned, set[str]()

    def at_one_position(context: Any) -> dict[str, int]:
        pins = aligned(context)  # asked twice where a heartbeat comes between
        path = context.path(context.state("requests").version.path)
        if path not in spoiled:
            spoiled.add(path)
            spoil(path)
        return {**pins, path: log.latest_version(path)}

    monkeypatch.setattr(validation, "aligned", at_one_position)


def texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Whatever is below a folder, with the contents of tables as rows."""
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            yield path, str(pq.read_table(path).to_pylist())
        elif path.is_file():
            yield path, path.read_bytes().decode("latin-1")


async def test_three_defects_shut_the_gate_by_day_and_no_value_leaves_the_tables(
    region: Planted, planted: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status = region.carry(await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua"))
    assert status.shown == "awaiting-confirmation", status.why
    checks = region.checks()
    per_day = checks["rows per day"]
    assert (per_day.ok, checks["unchanged columns"].ok) == (False, False)
    wrong = {day.day: day for day in per_day.days if not day.equal}
    assert set(wrong) == {BAD, LOST, TWICE}
    assert wrong[BAD].columns == ("ip",)
    assert [wrong[day].new - wrong[day].old for day in (BAD, LOST, TWICE)] == [0, -1, 1]
    assert checks["columns that change"].summaries[0].column == "ua"
    records = (await region.driver.compared("web", status.rollout)).records
    assert {(r.day, r.column) for r in records if r.equal is False} >= {(BAD, "ip"), (LOST, ROWS), (TWICE, ROWS)}
    assert {r.column for r in records} == {ROWS, "id", "ts", "day", "ip", "ua"}
    printed = [
        region.console("status", "--output", "json"),
        region.console("status"),
        region.console("show", status.rollout, "--days"),
        region.console("show", status.rollout, "--output", "json"),
        region.console("history", "--output", "json"),
    ]
    assert all(BAD in text for text in printed[:4]), printed
    compared = next(iter(json.loads(printed[0])["regions"]))["comparison"][0]
    assert (compared["differing"], [day["day"] for day in compared["differing_days"]]) == (3, [BAD, LOST, TWICE])
    # shown to whom asks for it
    examples = region.service.examples("web", "requests", LOST)
    assert CANARY in json.dumps(examples.differing.old)
    assert CANARY[:9] in json.dumps(region.service.examples("web", "requests", BAD).differing.new)
    # and nowhere else
    reports = documents(status.checks)
    assert all(BAD in text for text in reports)
    printed += [*reports, *capfd.readouterr(), json.dumps(encode(status))]
    assert not [text for text in printed if CANARY[:9] in text]
    assert CANARY in "".join(text for _, text in texts(region.warehouse / "landing"))
    assert [path for path, text in texts(region.warehouse / "_console") if CANARY[:9] in text] == []
    region.discard()


async def test_records_are_read_in_pages(region: Planted) -> None:
    """More of them than a frame holds."""
    from console.agent.compared.records import records_of
    from console.cli.commands.receipts.days import every_record

    many = [
        ComparedColumn(table="t", day=f"d{n:06}", column=ROWS, old=n, new=n, equal=True) for n in range(2 * PAGE + 1)
    ]
    records_of(region.warehouse, "web").append("web-99", many)
    pages = [await region.driver.compared("web", "web-99", after) for after in (0, PAGE, 2 * PAGE)]
    assert [(len(page.records), page.after) for page in pages] == [(PAGE, PAGE), (PAGE, 2 * PAGE), (1, 0)]
    assert [record.old for record in await every_record(region.driver, "web", "web-99")] == [*range(2 * PAGE + 1)]
    assert max(len(json.dumps(encode(page))) for page in pages) < 1 << 20
