"""Regions of a fleet are planned in threads, over the caches of one process."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

from console.planning import clear_caches, plan
from console.planning.cache.same import IdentityCache
from tests.planning.world import REGION, live, pipeline

THREADS = 8


def test_threads_that_ask_at_once_get_one_object_that_is_made_once() -> None:
    cache: IdentityCache[object] = IdentityCache()
    together = Barrier(THREADS)
    key, made = object(), []

    def make() -> object:
        sleep(0.02)  # long enough for all others to ask
        made.append(object())
        return made[-1]

    def ask() -> object:
        together.wait()
        return cache.get(make, key)

    with ThreadPoolExecutor(THREADS) as pool:
        results = [call.result() for call in [pool.submit(ask) for _ in range(THREADS)]]
    assert len(made) == 1
    assert all(result is made[0] for result in results)


def test_plans_made_in_threads_are_the_plans_made_one_by_one() -> None:
    wanted, region = pipeline(), live()
    clear_caches()
    alone = plan(wanted, region, REGION, "test")
    clear_caches()
    with ThreadPoolExecutor(THREADS) as pool:
        plans = [call.result() for call in [pool.submit(plan, wanted, region, REGION, "test") for _ in range(THREADS)]]
    assert {one.digest() for one in plans} == {alone.digest()}
