"""Two consoles' agents at one release table, as processes that share nothing but the files: a hundred promotions raced for."""

import multiprocessing
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from console.agent.store.ledger import Releases
from console.errors import Conflict
from console.model.live import Release

pytestmark = pytest.mark.faults
ROUNDS, FRESH = 100, 10  # each region for ten rounds: the table grows with every promotion
NAMES = ("ada", "eve")
TIMEOUT = 300.0  # seconds; a process that died must not be waited for longer


def contend(place: str, mine: int, gate: Barrier, report: "Queue[tuple[int, str, str, int, str]]") -> None:
    """In each round everyone wants another release live; who did, and what the other one heard, is told."""
    name = NAMES[mine]
    for number in range(ROUNDS):
        releases = Releases(Path(place) / str(number // FRESH), "web")
        gate.wait(TIMEOUT)
        now = releases.in_state("live")
        live = now.row.id if now else ""
        others = [release for release in ("r1", "r2", "r3") if release != live]
        gate.wait(TIMEOUT)
        try:
            report.put((number, name, "won", releases.swap(live, others[mine], name, f"{name}s-host"), others[mine]))
        except Conflict as error:
            report.put((number, name, str(error), error.exit_code, others[mine]))


def test_of_two_processes_that_promote_a_hundred_times_one_commit_wins_each_time_and_the_other_learns_who(
    tmp_path: Path,
) -> None:
    for number in range(ROUNDS // FRESH):
        releases = Releases(tmp_path / str(number), "web")
        for id in ("r1", "r2", "r3"):
            releases.propose(
                Release(id=id, pipeline="web", digest="digest", tables=(), feeds=()), f"web-{id[1:]}", "zoe", "tower"
            )
    context = multiprocessing.get_context("spawn")
    gate, report = context.Barrier(len(NAMES)), context.Queue()
    rivals = [context.Process(target=contend, args=(str(tmp_path), mine, gate, report)) for mine in range(len(NAMES))]
    for rival in rivals:
        rival.start()
    ends: dict[int, list[tuple[str, str, int, str]]] = {}
    for _ in range(ROUNDS * len(NAMES)):
        number, *end = report.get(timeout=TIMEOUT)
        ends.setdefault(number, []).append(tuple(end))
    for rival in rivals:
        rival.join(TIMEOUT)
    for number in range(ROUNDS):
        ((winner, _, version, live),) = [end for end in ends[number] if end[1] == "won"]
        ((_, heard, code, _),) = [end for end in ends[number] if end[1] != "won"]
        assert version == 3 + number % FRESH, "one commit a round"
        assert code == 4
        assert f"{live} is live" in heard
        assert f"{winner} from {winner}s-host" in heard
    for number in range(ROUNDS // FRESH):
        states = [release.row.state for release in Releases(tmp_path / str(number), "web").all()]
        assert (states.count("live"), states.count("previous")) == (1, 1)
