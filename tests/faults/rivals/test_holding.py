"""Processes that commit to one table by check and rename, as Delta's local log store does: the region's lock keeps them apart."""

import multiprocessing
import os
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from console.agent.lock import RegionLock

pytestmark = pytest.mark.faults
RIVALS, ROUNDS = 3, 20
TIMEOUT = 300.0  # seconds


def commits(place: str, mine: int, gate: Barrier) -> None:
    """Each round takes the region, commits one version, and lets go of it."""
    log = Path(place) / "_delta_log"
    gate.wait(TIMEOUT)
    for number in range(ROUNDS):
        lock = RegionLock(Path(place))
        lock.take({"tool": str(mine)}, TIMEOUT)
        commit(log, f"{mine}/{number}")
        os.close(lock.fd)


def commit(log: Path, what: str) -> None:
    """What LocalLogStore does (docs/design.md, P4): look for the next version's file, then rename one's own over it."""
    version = len(list(log.glob("*.json")))
    fresh = log / f".{what.replace('/', '-')}"
    fresh.write_text(what)
    os.sched_yield()  # whoever else is here has looked by now
    fresh.rename(log / f"{version:020}.json")


def test_of_processes_that_race_for_a_region_none_commits_over_anothers_version(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(RIVALS)
    rivals = [context.Process(target=commits, args=(str(tmp_path), mine, gate)) for mine in range(RIVALS)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join(TIMEOUT)
    assert [rival.exitcode for rival in rivals] == [0] * RIVALS
    values = [path.read_text() for path in sorted((tmp_path / "_delta_log").glob("*.json"))]
    assert sorted(values) == sorted(f"{mine}/{number}" for mine in range(RIVALS) for number in range(ROUNDS))
