"""Random schemas and random migrations: everything is applied and every row is right, or nothing is and the reason is given.

The truth is ClickHouse's own catalogue before and after, and rows computed in plain Python. For longer:
`python -m tests.propagation.worlds.soak --minutes 60`, or `WORLDS=2000 SEED=7000` here.
"""

import os

import pytest

from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.worlds.live import NO_WORLD, judged

pytestmark = pytest.mark.stores
COUNT, SEED = int(os.environ.get("WORLDS", "30")), int(os.environ.get("SEED", "0"))


def test_a_random_world_is_carried_over_whole_or_stays_as_it_is(server: ClickHouse) -> None:
    results = [judged(server, SEED + number) for number in range(COUNT)]
    carried, none = results.count(None), results.count(NO_WORLD)
    print(f"\n{COUNT} worlds from seed {SEED}: {carried} carried over, {COUNT - carried - none} refused by name")
    assert carried >= COUNT // 5  # else the worlds say nothing
    assert none <= COUNT // 10
