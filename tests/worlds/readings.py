"""Drawn landing tables without an agent: the code that reads live rows and the code that reads history, each compared with the drawn rows.

A world costs seconds here instead of minutes. `carried.py` covers feeds, gate and releases.
"""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from console.agent.feeds import ranges
from console.agent.recount.pinned_tables import Pinned
from console.agent.rows.snapshot import stored_at
from console.agent.store import log
from console.errors import FeedStopped
from console.model.live import TableState, Version
from console.model.schema import OnRewrite, Table
from tests.worlds.carried import FOLDERS, key, stage
from tests.worlds.drawn import FEATURES, WRITERS, World, drawn
from tests.worlds.writers import newest, writer

KINDS = [(who, what) for who in WRITERS for what in FEATURES[who]]
random.Random(0).shuffle(KINDS)  # so that a few of them are of each writer
TABLE = TableState(
    table=Table(name="l", kind="landing", columns=()),
    version=Version(content="l", path="l", columns=()),
    read="SELECT * FROM stored",
    rows="",
    values={},
)


def world_of(number: int) -> World:
    """Each kind of writer and feature in turn."""
    world = drawn(number, *KINDS[number % len(KINDS)], random.Random(f"reading {number}"))
    world.target = ""  # none of ours is written
    return world


def read(first: int, many: int, writes: Any, reads: Any) -> list[str]:
    """A line for each reading that is not as it was drawn.

    writes  a stranger's session
    reads   one like the agent's
    """
    wrong = []
    for number in range(first, first + many):
        world, root = world_of(number), Path(tempfile.mkdtemp(prefix="console-readings-"))
        try:
            wrong += [f"reading {number}: {world}: {item}" for item in _differences(world, root, writes, reads)]
        except Exception as error:
            wrong.append(f"reading {number}: {world}: {type(error).__name__}: {error}"[:600])
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return wrong


def _differences(world: World, root: Path, writes: Any, reads: Any) -> Iterator[str]:
    chance = random.Random(f"ranges {world.number}")
    place = root / chance.choice(FOLDERS) / "l"
    place.parent.mkdir()
    table = writer(world, place, writes)
    stage(world, table, world.before, history=True)
    world.fence = newest(place)
    truth = _truth(world)
    yield from _apart("history", _shown(world, reads, stored_at(reads, str(place), world.fence)), truth)
    judged = Pinned(TABLE, str(place), world.fence).stored(reads)
    yield from _apart("history as the gate reads it", _shown(world, reads, judged), truth)
    world.rows = []
    stage(world, table, world.after, history=False)
    counts: Counter[str] = Counter()
    with suppress(FeedStopped) if world.stands else nullcontext():
        for part in _ranges(str(place), world, chance):
            rows = ranges.read(reads, str(place), part, root / "scratch", foreign=tuple(world.columns))
            if world.stands and "k" not in rows.columns:
                break
            counts += _shown(world, reads, rows)
    yield from _apart("live", counts, _truth(world))


def _ranges(place: str, world: World, chance: random.Random) -> Iterator[ranges.Range]:
    after, end = world.fence, log.latest_version(place)
    policy: OnRewrite = "ignore" if world.after == "delete" else "stop"
    while part := ranges.next_range(place, after, end, chance.randrange(1, 12), policy=policy):
        after = part.last
        if part.files:
            yield part


def _truth(world: World) -> Counter[str]:
    return Counter(key(world.shown(row)) for row in world.rows)


def _shown(world: World, session: Any, rows: Any) -> Counter[str]:
    rows.createOrReplaceTempView("read_rows")
    return Counter(map(key, session.sql(f"{world.sql} FROM read_rows").toArrow().to_pylist()))


def _apart(what: str, result: Counter[str], truth: Counter[str]) -> Iterator[str]:
    if result != truth:
        yield f"{what}: too many: {list((result - truth).items())[:2]}, missing: {list((truth - result).items())[:2]}"
