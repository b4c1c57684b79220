"""The lease, with holders and successors that are cut off, stopped, slow or told nothing."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from console.agent.errors import LeaseLost, StoreUnreachable
from console.agent.lease.lease import Lease, LeaseTimes, holder
from console.agent.lease.objects import Objects
from console.agent.object_store.s3 import S3Objects
from console.errors import Conflict
from tests.objects.conftest import Place
from tests.objects.disk import DiskObjects
from tests.objects.proxy import Fate, Proxy
from tests.objects.server import BUCKET

pytestmark = pytest.mark.s3

TIMES = LeaseTimes()


class SteppedClock:
    """Moves only when somebody waits, or by hand. `meanwhile` runs at each wait."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.meanwhile: Callable[[], None] = lambda: None

    def now(self) -> float:
        return 0.0

    def elapsed(self) -> float:
        return self.seconds

    def wait(self, halt: threading.Event, seconds: float) -> None:
        self.seconds += seconds
        self.meanwhile()


@pytest.fixture(params=["disk", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Any) -> Objects:
    return DiskObjects(tmp_path) if request.param == "disk" else request.getfixturevalue("place").objects


def taken(
    objects: Objects, clock: SteppedClock, *, wait: float = 0.0, silent: float = 0.0, force: bool = False
) -> Lease:
    lease = Lease(objects, {"tool": "test"}, clock=clock)
    lease.take(wait=wait, silent=silent, force=force)
    return lease


def test_a_lease_is_taken_once_and_names_its_holder(objects: Objects) -> None:
    clock = SteppedClock()
    first = taken(objects, clock)
    first.check()
    assert (first.epoch, holder(objects).epoch, holder(objects).facts["pid"]) == (1, 1, os.getpid())
    with pytest.raises(Conflict, match=f"held by another agent: pid {os.getpid()} on"):
        taken(objects, clock)


def test_a_released_lease_is_taken_without_waiting(objects: Objects) -> None:
    clock = SteppedClock()
    first = taken(objects, clock)
    first.release()
    assert holder(objects).released
    assert taken(objects, clock).epoch == 2
    assert clock.seconds == 1000.0
    with pytest.raises(LeaseLost):
        first.check()


def test_a_silent_holder_has_a_successor_after_a_whole_term_and_not_before(objects: Objects) -> None:
    clock = SteppedClock()
    first = taken(objects, clock)
    clock.seconds += 1000  # silent for long already, but nobody has watched it
    with pytest.raises(Conflict):
        taken(objects, clock, wait=TIMES.term - 1)
    watched = clock.seconds
    assert taken(objects, clock, wait=2 * TIMES.term).epoch == 2
    assert clock.seconds - watched >= TIMES.term
    with pytest.raises(LeaseLost, match="the lease passed to pid"):
        first.renew()


def test_a_holder_that_renews_keeps_it_whatever_the_clocks_say(objects: Objects) -> None:
    clock, own = SteppedClock(), SteppedClock()
    first = Lease(objects, {}, clock=own)
    own.seconds = -1e6  # another host's: only their differences count
    first.take()
    clock.meanwhile = first.renew
    with pytest.raises(Conflict):
        taken(objects, clock, wait=2 * TIMES.term)
    first.check()


def test_an_agent_that_lives_is_named_sooner_than_a_dead_one_is_succeeded(objects: Objects) -> None:
    clock = SteppedClock()
    first = taken(objects, clock)
    clock.meanwhile = first.renew
    with pytest.raises(Conflict):
        taken(objects, clock, wait=15, silent=45)
    assert clock.seconds == 1015.0
    alive_until = clock.seconds + 4

    def dying() -> None:
        if clock.seconds < alive_until:
            first.renew()

    clock.meanwhile = dying
    assert taken(objects, clock, wait=15, silent=45).epoch == 2
    assert alive_until + TIMES.term - TIMES.poll <= clock.seconds <= 1015.0 + 45


def test_a_forced_lease_passes_at_once_and_the_former_holder_learns_it(objects: Objects) -> None:
    clock = SteppedClock()
    first = taken(objects, clock)
    assert taken(objects, clock, force=True).epoch == 2
    with pytest.raises(LeaseLost):
        first.renew()
    with pytest.raises(LeaseLost):
        first.check()


def test_a_holder_without_a_beat_is_waited_for_like_any_other(objects: Objects) -> None:
    """It was killed right after it had put its epoch, or never learned that it had."""
    clock = SteppedClock()
    taken(objects, clock)
    with pytest.raises(Conflict):
        taken(objects, clock, wait=TIMES.term / 2)
    assert taken(objects, clock, wait=2 * TIMES.term).epoch == 2


def test_a_put_whose_answer_is_lost_is_found_to_have_won(place: Place, proxy: Proxy) -> None:
    lost: list[str] = []

    def rule(method: str, path: str) -> Fate:
        if method == "PUT" and not lost:
            lost.append(path)
            return "lose answer"
        return "pass"

    proxy.rule = rule
    lease = taken(place.cut_off, SteppedClock())
    assert (len(lost), lease.epoch, holder(place.objects).epoch) == (1, 1, 1)


def test_a_put_that_never_arrived_is_repeated(place: Place, proxy: Proxy) -> None:
    fates: list[Fate] = ["drop"]
    proxy.rule = lambda method, path: fates.pop() if method == "PUT" and fates else "pass"
    assert taken(place.cut_off, SteppedClock()).epoch == 1
    assert not fates


def test_a_lost_answer_does_not_hide_that_a_rival_won(place: Place, proxy: Proxy) -> None:
    clock = SteppedClock()
    rivals: list[Lease] = []

    def rule(method: str, path: str) -> Fate:
        if method == "PUT" and not rivals:  # between its look and its put
            rivals.append(taken(place.objects, clock))
            return "lose answer"
        return "pass"

    proxy.rule = rule
    with pytest.raises(Conflict):
        taken(place.cut_off, clock)
    assert [rival.epoch for rival in rivals] == [1]


def test_whatever_a_store_says_renewals_continue(tmp_path: Any) -> None:
    class Odd(DiskObjects):
        failures = 3

        def put(self, key: str, data: bytes) -> None:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("no error of ours")
            super().put(key, data)

    clock, halt = SteppedClock(), threading.Event()
    lease = taken(Odd(tmp_path), clock)

    def meanwhile() -> None:
        if clock.seconds >= 1000.0 + TIMES.hold + 1:
            halt.set()

    clock.meanwhile = meanwhile
    lease.keep(halt, lambda error: pytest.fail(f"lost: {error}"))
    lease.check()


def test_an_agent_cut_from_its_store_stops_before_a_successor_may_take_its_place(place: Place, proxy: Proxy) -> None:
    clock = SteppedClock()
    first = taken(place.cut_off, clock)
    first.renew()
    proxy.partition()
    acting: list[float] = []

    def meanwhile() -> None:
        try:
            first.check()
            acting.append(clock.seconds)
        except LeaseLost:
            pass

    with pytest.raises(StoreUnreachable):
        first.renew()
    cut = clock.seconds
    clock.meanwhile = meanwhile
    second = taken(place.objects, clock, wait=10 * TIMES.term)
    assert second.epoch == 2
    assert acting
    assert max(acting) - cut <= TIMES.hold < TIMES.term <= clock.seconds - cut
    proxy.heal()
    with pytest.raises(LeaseLost, match="the lease passed to"):
        first.renew()


def test_an_agent_that_was_cut_off_goes_on_if_nobody_took_its_place(place: Place, proxy: Proxy) -> None:
    clock = SteppedClock()
    lease = taken(place.cut_off, clock)
    proxy.partition()
    clock.seconds += TIMES.hold
    with pytest.raises(StoreUnreachable):
        lease.renew()
    with pytest.raises(LeaseLost, match="was not renewed"):
        lease.check()
    proxy.heal()
    lease.renew()
    lease.check()


def test_a_store_that_was_away_for_all_gives_the_holder_the_time_to_renew(place: Place, proxy: Proxy) -> None:
    clock = SteppedClock()
    taken(place.objects, clock)
    began = clock.seconds

    def meanwhile() -> None:
        away = TIMES.term / 3 < clock.seconds - began < TIMES.term
        proxy.rule = lambda method, path: "drop" if away else "pass"

    clock.meanwhile = meanwhile
    assert taken(place.cut_off, clock, wait=10 * TIMES.term).epoch == 2
    assert clock.seconds - began >= 2 * TIMES.term


def test_the_renewing_thread_outlives_an_outage_and_ends_when_the_lease_has_passed(place: Place, proxy: Proxy) -> None:
    clock = SteppedClock()
    lease = taken(place.cut_off, clock)
    turns: list[float] = []

    def meanwhile() -> None:
        turns.append(clock.seconds)
        match len(turns):
            case 1:
                proxy.partition()
            case 3:
                proxy.heal()
            case 5:
                lease.check()
                taken(place.objects, clock, force=True)
            case _:
                assert len(turns) < 9

    clock.meanwhile = meanwhile
    lost: list[LeaseLost] = []
    lease.keep(threading.Event(), lost.append)
    assert len(lost) == 1


# ------------------------------------------------------------------------------------------------------- processes

BRIEF = LeaseTimes(term=3.0, hold=2.0, renew=0.2, poll=0.1)
HOLDER = """
import sys, threading, time
from tests.objects.test_lease import BRIEF, reached
from console.agent.lease.lease import Lease
lease = Lease(reached(*sys.argv[1:3]), {}, times=BRIEF)
lease.take()
print("holds", flush=True)
threading.Thread(target=lease.keep, args=(threading.Event(), lambda error: print("lost", flush=True)), daemon=True).start()
time.sleep(120)
"""


def reached(server: str, folder: str) -> S3Objects:
    from console.agent.object_store.s3 import S3Access

    return S3Objects(BUCKET, folder, S3Access(endpoint=server, region="us-east-1", key_id="test", secret="test"))


def test_a_process_stopped_past_its_lease_learns_that_it_has_a_successor(server: str) -> None:
    stopped = subprocess.Popen([sys.executable, "-c", HOLDER, server, "stopped"], stdout=subprocess.PIPE, text=True)
    try:
        assert stopped.stdout is not None
        assert stopped.stdout.readline() == "holds\n"
        stopped.send_signal(signal.SIGSTOP)
        lease = Lease(reached(server, "stopped"), {}, times=BRIEF)
        lease.take(wait=60)
        assert lease.epoch == 2
        stopped.send_signal(signal.SIGCONT)
        assert stopped.stdout.readline() == "lost\n"
    finally:
        stopped.kill()
        stopped.wait()
        assert stopped.stdout is not None
        stopped.stdout.close()


def seize(server: str, times: int, answers: Any) -> None:
    lease = Lease(reached(server, "seized"), {})
    epochs = []
    for _ in range(times):
        lease.take(force=True)
        epochs.append(lease.epoch)
    answers.put(epochs)


def test_no_epoch_has_two_holders_however_many_seize_the_lease(server: str) -> None:
    spawned = multiprocessing.get_context("spawn")
    answers = spawned.Queue()
    rivals = [spawned.Process(target=seize, args=(server, 8, answers)) for _ in range(3)]
    for rival in rivals:
        rival.start()
    epochs = Counter(epoch for _ in rivals for epoch in answers.get(timeout=120))
    for rival in rivals:
        rival.join()
    assert epochs == Counter(range(1, 25))
    facts = json.loads(reached(server, "seized").read(f"_console/lease/{24:020}.json") or b"")
    assert facts["host"]
    assert facts["since"] <= time.time()
