"""Processes that put the same keys if absent, each key at the same moment."""

import multiprocessing
from multiprocessing.synchronize import Barrier
from typing import Any

from tests.objects.server import client

WAIT_SECONDS = 60.0


def winners(address: str, *, keys: int, processes: int) -> list[int]:
    """How many of the processes won each key, by the answers they got."""
    spawned = multiprocessing.get_context("spawn")
    start, answers = spawned.Barrier(processes), spawned.Queue()
    racers = [spawned.Process(target=_race, args=(address, keys, start, answers)) for _ in range(processes)]
    for racer in racers:
        racer.start()
    won: list[list[bool]] = [answers.get(timeout=WAIT_SECONDS) for _ in racers]
    for racer in racers:
        racer.join()
    return [sum(answers) for answers in zip(*won, strict=True)]


def _race(address: str, keys: int, start: Barrier, answers: Any) -> None:
    from obstore import put
    from obstore.exceptions import AlreadyExistsError

    store = client(address)
    won = []
    for key in range(keys):
        start.wait(WAIT_SECONDS)
        try:
            put(store, f"race/{key:06}", b"x", mode="create")
            won.append(True)
        except AlreadyExistsError:
            won.append(False)
    answers.put(won)
