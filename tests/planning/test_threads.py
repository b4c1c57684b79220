"""Regions of a fleet are planned in threads, over one cache; two caches have nothing in common."""

from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import pytest

from console.model.plan import Plan
from console.planning import PlannerCache, check, plan
from console.planning.cache.planner_cache import Memo
from tests.planning.edits import EDITS
from tests.planning.world import REGION, live, pipeline

THREADS = 8
RESULTS = Memo[object]()


class Counting(MutableMapping[str, str]):
    """A memory that notes what was compiled: every entry that was stored in it."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self.stored: list[str] = []

    def __getitem__(self, key: str) -> str:
        return self._entries[key]

    def __setitem__(self, key: str, value: str) -> None:
        sleep(0.001)  # long enough for other threads to ask
        self.stored.append(key)
        self._entries[key] = value

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def test_threads_that_ask_at_once_get_one_object_that_is_made_once() -> None:
    cache, together = PlannerCache(), Barrier(THREADS)
    key, made = object(), []

    def make() -> object:
        sleep(0.02)  # long enough for all others to ask
        made.append(object())
        return made[-1]

    def ask() -> object:
        together.wait()
        return cache.by_identity(RESULTS, make, key)

    with ThreadPoolExecutor(THREADS) as pool:
        results = [call.result() for call in [pool.submit(ask) for _ in range(THREADS)]]
    assert len(made) == 1
    assert all(result is made[0] for result in results)


@pytest.mark.slow
def test_plans_made_in_threads_over_one_cache_compile_the_pipeline_once() -> None:
    wanted, region = pipeline(), live()
    alone, together = Counting(), Counting()
    single = plan(wanted, region, REGION, "test", PlannerCache(alone))
    cache, start = PlannerCache(together), Barrier(THREADS)

    def planned() -> Plan:
        start.wait()
        return plan(wanted, region, REGION, "test", cache)

    with ThreadPoolExecutor(THREADS) as pool:
        plans = [call.result() for call in [pool.submit(planned) for _ in range(THREADS)]]
    assert {one.digest() for one in plans} == {single.digest()}
    assert sorted(together.stored) == sorted(alone.stored)


@pytest.mark.slow
def test_two_caches_share_nothing() -> None:
    wanted, one, other = pipeline(), Counting(), Counting()
    for memory in (one, other):
        check(wanted, PlannerCache(memory))
    assert one.stored == other.stored != []
    key, first, second = object(), PlannerCache(), PlannerCache()
    mine = first.by_identity(RESULTS, object, key)
    assert second.by_identity(RESULTS, object, key) is not mine
    assert first.by_identity(RESULTS, object, key) is mine


@pytest.mark.slow
def test_a_plan_over_a_warm_cache_is_the_plan_over_a_fresh_one() -> None:
    warm, fresh = PlannerCache(), dict[str, Plan]()
    possible = {name: edit for name, edit in EDITS.items() if not name.startswith(("C104", "C110", "C111", "C112"))}
    for _ in range(2):
        for name, edit in possible.items():
            wanted, region = edit.pipeline(), edit.survey()
            if name not in fresh:
                fresh[name] = plan(wanted, region, REGION, "test", allowed=edit.allowed)
            assert plan(wanted, region, REGION, "test", warm, allowed=edit.allowed) == fresh[name], name


def test_the_oldest_results_make_room() -> None:
    cache, few = PlannerCache(), Memo[object](2)
    keys = [object() for _ in range(3)]
    first = [cache.by_identity(few, object, key) for key in keys]
    assert cache.by_identity(few, object, keys[2]) is first[2]
    assert cache.by_identity(few, object, keys[0]) is not first[0]
