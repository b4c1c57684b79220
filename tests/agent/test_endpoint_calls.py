"""Recorded calls on real Spark and Delta: an endpoint that reads five times as much, a row that is lost and a wrong cast are
caught at the gate by name, with figures that Delta's log and DuckDB confirm, and with no value of a row.

The agent runs in this process; one JVM for all tests.
"""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.agent.execution import endpoint_calls, validation
from console.agent.rollout.context import RolloutContext
from console.agent.store import log
from console.model.codec import encode
from console.model.event import Checked
from console.model.recorded_call import ReplayedCall
from console.model.status import Status
from console.model.step import Backfill, Validate
from tests.agent.test_expectations import CANARY, ExpectingRegion
from tests.agent.test_resilience import files
from tests.reports.runs import documents

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
STATUS = "get_json_object(payload, '$.status')"
WRONG = "CAST(try_cast(get_json_object(payload, '$.status') AS INT) % 100 AS STRING)"
OF_DAY = "/* parameters: {day: date} */\nSELECT id, ts, ip FROM requests WHERE CONDITION ORDER BY id\n"
BY_STATUS = "SELECT status, count(*) AS n FROM requests GROUP BY status ORDER BY n DESC, status\n"
BY_ADDRESS = "/* parameters: {since: date} */\nSELECT ip, count(*) AS n FROM requests WHERE day >= :since GROUP BY ip ORDER BY ip\n"
CALLS = {
    "of_day": "calls:\n  - parameters: {day: 2026-11-02}\n  - {name: tight, parameters: {day: 2026-11-03}, budget: {files: 3}}\n",
    "by_status": "calls:\n  - {}\n",
    "by_address": "calls:\n  - {name: all, parameters: {since: 2026-11-01}}\n",
}


class CalledRegion(ExpectingRegion):
    """A region with endpoints, which operators have called."""

    def written(self, root: Path, status: str = STATUS, of_day: str = "day = :day") -> Path:
        """The pipeline's files. status: expression of that column;  of_day: condition of the endpoint"""
        shutil.rmtree(root, ignore_errors=True)
        files(root, "status: string", f"{status} AS status")
        (root / "endpoints").mkdir()
        for name, sql in (
            ("of_day", OF_DAY.replace("CONDITION", of_day)),
            ("by_status", BY_STATUS),
            ("by_address", BY_ADDRESS),
        ):
            (root / "endpoints" / f"{name}.sql").write_text(sql)
            (root / "endpoints" / f"{name}.calls.yaml").write_text(CALLS[name])
        return root

    async def changed(self, root: Path) -> Status:
        self.install("web", root)
        plan = await self.plan("web")
        assert not plan.refusals, plan.refusals
        return self.carry(plan)

    def stored_files(self, day: str = "") -> tuple[int, int]:
        """Files of the live version, by its log: of one day and of all days; Delta reads none of the rows without a time."""
        release = self.controller.live()
        state = release.table("requests")
        assert state is not None
        added = DeltaTable(str(self.warehouse / state.version.path)).file_uris()
        return sum(f"day={day}/" in uri for uri in added), sum("day=__HIVE" not in uri for uri in added)


def checked(status: Status, endpoint: str) -> tuple[Checked, Checked]:
    """Answers and cost."""
    answers, cost = (check for check in status.checks if check.table == endpoint)
    return answers, cost


def called(status: Status, endpoint: str, name: str) -> ReplayedCall:
    return next(call for call in checked(status, endpoint)[0].calls if call.name == name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CalledRegion]:
    live = CalledRegion(tmp_path_factory.mktemp("called"))
    try:
        status = await live.changed(live.written(live.root / "first"))
        assert status.shown == "awaiting-confirmation", status.why
        assert [
            check for check in status.checks if check.calls
        ] == []  # nothing was live: there is nothing to compare with
        live.promote()
        yield live
    finally:
        live.service.agent.stop()
        await live.close()


async def test_an_endpoint_that_reads_five_times_as_much_fails_by_its_files_and_not_by_its_answers(
    region: CalledRegion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table is rebuilt. The agent dies, as far as its thread can, between two calls, and a retry runs them anew."""
    first, times = endpoint_calls.replay, []

    def dies(*args: Any) -> ReplayedCall:
        times.append(1)
        if len(times) == 2:
            raise MemoryError
        return first(*args)

    monkeypatch.setattr(endpoint_calls, "replay", dies)
    assert (
        await region.changed(region.written(tmp_path / "dearer", of_day="date_format(ts, 'yyyy-MM-dd') = :day"))
    ).held
    plan = region.controller.recorder.plan
    assert plan is not None
    assert not any(isinstance(step, Backfill) for step in plan.steps)
    assert [len(step.calls) for step in plan.steps if isinstance(step, Validate)] == [2]  # of the edited endpoint alone
    region.controller.control("retry", "ada")
    status = region.stands()
    assert status.shown == "awaiting-confirmation", status.why
    answers, cost = checked(status, "of_day")
    assert answers.ok is True, answers.detail
    assert cost.ok is False
    one, every = region.stored_files("2026-11-02")
    call = called(status, "of_day", "call 1")
    assert call.live is not None
    assert call.new is not None
    assert (call.live.files, call.new.files) == (one, every)
    assert call.new.bytes > 2 * call.live.bytes > 0
    assert (call.runs, call.same, call.same_cost) == (4, True, False)
    ((rows,),) = region.truth("SELECT count(*) FROM landing WHERE CAST(ts AS DATE) = '2026-11-02'")
    assert (call.rows_live, call.rows_new) == (rows, rows)
    tight = called(status, "of_day", "tight")
    assert f"{every} files, 3 at most by its budget" in tight.why_cost
    region.discard()


async def test_a_lost_row_and_a_wrong_cast_are_found_in_the_answers_and_no_value_is_kept(
    region: CalledRegion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody deletes a row of the new version before it is checked. The cast is the edit itself: the plan expects other
    values of that column, so a person decides."""
    aligned = validation.aligned
    ((lost, address),) = region.truth(
        "SELECT id, json_extract_string(payload, '$.ip') FROM landing WHERE CAST(ts AS DATE) = '2026-11-02' LIMIT 1"
    )

    def with_loss(context: RolloutContext) -> dict[str, int]:
        pins = aligned(context)
        path = context.path(context.state("requests").version.path)
        DeltaTable(path).delete(f"id = '{lost}'")
        return {**pins, path: log.latest_version(path)}

    monkeypatch.setattr(validation, "aligned", with_loss)
    status = await region.changed(region.written(tmp_path / "wrong", status=WRONG))
    assert status.shown == "awaiting-confirmation", status.why
    answers, cost = checked(status, "of_day")
    assert (answers.ok, cost.ok) == (False, True), (answers.detail, cost.detail)
    call = called(status, "of_day", "call 1")
    assert (call.same, call.only_live, call.only_new) == (False, 1, 0)
    assert called(status, "of_day", "tight").same is True
    assert checked(status, "by_address")[0].ok is False
    assert (called(status, "by_address", "all").only_live, called(status, "by_address", "all").only_new) in (
        (1, 1),
        (1, 0),
    )

    assert checked(status, "by_status")[0].ok is None
    groups = called(status, "by_status", "call 1")
    ((known,),) = region.truth(
        "SELECT count(DISTINCT coalesce(json_extract_string(payload, '$.status'), '')) FROM landing"
    )
    assert (groups.same, groups.only_live) == (None, known)
    assert "requests.status has another value" in groups.why

    kept = region.remembered() + json.dumps(encode(status)).encode()
    assert CANARY.encode() not in kept
    shown = "".join(f"{check.detail}{encode(check.calls)}" for check in status.checks if check.table != "requests")
    shown += "".join(documents(tuple(check for check in status.checks if check.table != "requests")))
    assert "1 of" in shown
    assert lost not in shown
    assert address not in shown
    region.discard()
