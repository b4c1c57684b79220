"""A watch after a promotion on real Spark and Delta: every kind of check finds a defect planted for it, by name, and a clean
release is left alone. A release that is taken back is, in one commit and without a lost row.

The agent runs in this process; one JVM for all tests, which run in this order.
"""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.agent.calls import replay
from console.agent.calls.verdict import COST
from console.agent.soak import after_promotion, at_gate, watch_checks
from console.agent.soak.spark_checks import CheckPace
from console.errors import AtGate, CheckFailed
from console.model.event import RolledBack
from console.model.identity import AgentReason, agent_reason
from tests.agent.watched_defects import DAY, DEFECTS, Defect, another_value, lost_and_doubled
from tests.agent.watched_pipeline import WatchedPipeline, WatchedRegion

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def line(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedPipeline]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (after_promotion, "ROUND_SECONDS"),
            (after_promotion, "SHARE"),
            (at_gate, "CHECK_SECONDS"),
            (at_gate, "SHARE"),
        ):
            patch.setattr(module, name, 0.1)
        patch.setattr(replay, "RUNS", 4)
        patch.setattr(watch_checks, "WATCH", CheckPace(every=3600.0, share=0.1, most=120.0))  # run when a test says so
        patch.setattr(watch_checks, "GATE", CheckPace(every=0.1, share=0.1, most=120.0, inconclusive=False))
        region = WatchedRegion(tmp_path_factory.mktemp("watched"))
        try:
            live = WatchedPipeline(region=region, name="web", suffix="")
            await live.releases(region.root / "first", first=True)
            live.watched("pause")
            await live.releases(region.root / "second")
            yield live
        finally:
            region.service.agent.stop()
            await region.close()


@contextmanager
def traffic(line: WatchedPipeline) -> Iterator[None]:
    over = threading.Event()

    def write() -> None:
        while not over.wait(0.7):
            line.arrive({}, {})

    writer = threading.Thread(target=write, name="writer", daemon=True)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join(60)


async def test_a_clean_release_passes_every_check_beside_a_writer(line: WatchedPipeline) -> None:
    with traffic(line):
        line.clean_rounds(1)
        line.due("newest rows", "live rows")
        before = line.clean_rounds(1)  # one that ended meanwhile may still be counted
        progress = line.clean_rounds(before.clean + 2)  # a hundred such watches of a minute are in the soak
    assert progress.rounds >= 2
    assert all(kind.due > 0 for kind in line.region.service.agent.rounds._watch._known["web"].slow)
    assert line.status.watched.breaches == ()
    # On a busy machine a call may take longer than before; below twice the time that is inconclusive, and no defect.
    assert [check for check in line.status.checks if check.ok is False or not (check.ok or check.check == COST)] == []


def planted(defect: Defect) -> Any:
    """Left to long runs: a second one for recorded calls, and the one by which a release is taken back below."""
    again = defect.name in ("more files to read", "lost and doubled")
    return pytest.param(defect, id=defect.name, marks=[pytest.mark.soak] if again else [])


@pytest.mark.parametrize("defect", [planted(defect) for defect in DEFECTS])
async def test_each_defect_is_a_breach_that_names_its_check(line: WatchedPipeline, defect: Defect) -> None:
    before = {breach.name for breach in line.status.watched.breaches}
    finder, names = defect.finders[0], {each.check for each in defect.finders}
    assert finder.check not in before
    defect.plant(line)
    line.due("policy's query", "newest rows", "live rows", "expectations", finder.kind)
    breach = line.breached(finder.check)
    found = {breach.name for breach in line.status.watched.breaches} - before
    assert found <= names, breach.detail
    assert breach.action == "pause"
    assert (line.status.state, bool(line.status.watched.holds)) == ("live", True)


async def test_a_value_that_changes_while_a_release_waits_at_its_gate_closes_it_until_it_is_right_again_and_approved(
    line: WatchedPipeline,
) -> None:
    line.controller.rollback(line.status.release, "ada", "laptop")
    line.watched("rollback", query="", rules={"approvals": 1})
    await line.begins(line.region.root / "third", lenient=True)
    await line.at_gate()
    line.approve()
    line.region.service.agent.tick()
    another_value(line)
    line.due("newest rows")
    name = "unchanged columns, newest days"
    line.until(lambda status: any(check.check == name and check.ok is False for check in status.checks))
    with pytest.raises(CheckFailed, match=name) as refused:
        line.promote()
    assert refused.value.code == "E_CHECK"
    line.rewrite(DAY, "ip", "CASE WHEN ip = '0.0.0.0' THEN '192.0.2.9' ELSE ip END")
    line.until(lambda status: all(check.ok for check in status.checks))
    with pytest.raises(AtGate) as unapproved:  # what was approved is another gate
        line.promote()
    assert unapproved.value.code == "E_APPROVALS"
    line.approve()


async def test_a_breach_takes_the_release_back_in_one_commit_and_no_row_is_lost(line: WatchedPipeline) -> None:
    """The release that the test before this one has left at its gate."""
    controller = line.controller
    was = controller.live().id
    line.promote()
    releases = str(line.region.warehouse / "_console" / "web" / "releases")
    with traffic(line):
        line.until(lambda status: status.watch is not None)
        promoted = DeltaTable(releases).version()
        line.due()
        lost_and_doubled(line)
        line.due("live rows")
        status = line.until(lambda status: status.state == "rolled-back")
    assert DeltaTable(releases).version() == promoted + 1
    assert (controller.live().id, agent_reason(status.decided_by)) == (was, AgentReason.BREACH)
    assert [breach.name for breach in status.watched.breaches] == ["requests: feed parse: live rows"]
    assert len(controller.recorder.events(RolledBack)) == 1
    line.follow()
    live, previous = sorted(line.judged(), key=lambda release: str(release["state"]))
    assert (live["id"], live["lost"], live["extra"]) == (was, 0, 0)
    assert previous["lost"] == previous["extra"] > 0  # by the defect; it is still fed
