"""SIGKILL of agent and console around their writes: the same command again, the same end, and no row lost or doubled.

The fixtures that play the three acts are in conftest: the first release, a change beside a writer and a reader, the way back.
"""

import pytest

from tests.faults import points
from tests.faults.acts import Act, died_once
from tests.faults.world import World, verdict

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("point", points.FIRST)
async def test_an_agent_killed_here_is_resumed_to_the_same_end(first: Act, point: str) -> None:
    assert point not in first.left, "it was never reached"
    assert died_once(first, point)
    assert verdict(first.judgement, []) == {}
    assert first.live


@pytest.mark.parametrize("state", points.STATES)
async def test_a_console_killed_in_this_state_is_resumed_to_the_same_end(first: Act, state: str) -> None:
    assert state in first.consoles
    assert verdict(first.judgement, []) == {}
    assert first.live


@pytest.mark.parametrize("point", [*points.LIVE, *points.CONSOLE])
async def test_killed_beside_a_writer_no_row_is_lost_or_doubled(
    first: Act, change: Act, world: World, point: str
) -> None:
    assert point not in change.left, "it was never reached"
    assert died_once(change, point)
    assert verdict(change.judgement, world.bad_reads()) == {}
    assert change.live != first.live


@pytest.mark.parametrize("point", points.BACK)
async def test_killed_on_the_way_back_the_release_before_is_whole(
    first: Act, back: Act, world: World, point: str
) -> None:
    assert point not in back.left, "it was never reached"
    assert died_once(back, point)
    assert verdict(back.judgement, world.bad_reads()) == {}
    assert back.live == first.live
