"""Reading of rollouts: of two requests that overlap, the screens keep what the later one is answered."""

import asyncio
from dataclasses import replace

from console.model.receipt import Past
from console.model.status import Status
from console.tui.history.store import HistoryStore
from tests.screens import scripted as s

KEY = ("us", "r2")


class Answering(s.ScriptedCockpit):
    """Answers each request for rollouts when, and in the order in which, the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[Past]] = []

    async def history(self, region: str, rollout: str = "") -> Past:
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]


def past(release: str) -> Past:
    return Past((replace(Status(), rollout="r2", release=release),))


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_region_asked_for_while_it_is_read_is_read_once_more() -> None:
    cockpit = Answering()
    store = HistoryStore(cockpit, lambda: None, lambda key, audit: None)
    reading = asyncio.create_task(store.read(["us"]))
    await turns()
    await store.read(["us"])
    await store.read(["us"])
    assert len(cockpit.waiting) == 1
    cockpit.waiting[0].set_result(past("before"))
    await turns()
    assert store.state.reading == {"us"}
    cockpit.waiting[1].set_result(past("after"))
    await reading
    assert len(cockpit.waiting) == 2
    assert store.state.listed["us"] == past("after").rollouts
    assert not store.state.reading


async def test_a_region_that_is_read_is_read_again_at_the_next_request() -> None:
    cockpit = Answering()
    store = HistoryStore(cockpit, lambda: None, lambda key, audit: None)
    for index, release in enumerate(("before", "after")):
        reading = asyncio.create_task(store.read(["us"]))
        await turns()
        cockpit.waiting[index].set_result(past(release))
        await reading
        assert store.state.listed["us"] == past(release).rollouts


async def test_of_two_requests_for_a_rollout_the_answer_of_the_later_one_stays() -> None:
    for first, second in ((0, 1), (1, 0)):
        cockpit = Answering()
        store = HistoryStore(cockpit, lambda: None, lambda key, audit: None)
        requests = [asyncio.create_task(store.read_whole(KEY))]
        await turns()
        requests.append(asyncio.create_task(store.read_whole(KEY)))
        await turns()
        for index in (first, second):
            cockpit.waiting[index].set_result(past(("before", "after")[index]))
            await turns()
        await asyncio.gather(*requests)
        assert store.state.whole[KEY] == past("after")
