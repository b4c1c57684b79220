"""Drawn landing tables without an agent: what reads live rows and what reads history, each beside the rows that were drawn.

A world costs seconds here instead of minutes, so that many are drawn: `python -m tests.worlds.readings --minutes 60`. Each run
ends in a line of docs/worlds.jsonl. What feeds, gate and releases make of the rows is `carried.py`'s.
"""

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from console.agent.feeds import ranges
from console.agent.recount.pinned import Pinned
from console.agent.rows.whole import stored_at
from console.agent.session import Settings, Spark
from console.agent.store import log
from console.model.live import TableState, Version
from console.model.schema import Table
from tests import soak
from tests.life.region import SHORT_LIVED
from tests.worlds.carried import FOLDERS, key, stage
from tests.worlds.drawn import FEATURES, WRITERS, World, drawn
from tests.worlds.writers import newest, writer, writing

KINDS = [(who, what) for who in WRITERS for what in FEATURES[who]]


def world_of(seed: int) -> World:
    """Each kind of writer and feature in turn."""
    return drawn(seed, *KINDS[seed % len(KINDS)], random.Random(f"reading {seed}"))


def differences(world: World, root: Path, writes: Any, reads: Any) -> Iterator[str]:
    """What is not as it was drawn.

    writes  a stranger's session
    reads   one like the agent's
    """
    chance = random.Random(f"ranges {world.number}")
    place = root / chance.choice(FOLDERS) / "l"
    place.parent.mkdir()
    table = writer(world, place, writes)
    stage(world, table, world.before, history=True)
    world.fence = newest(place)
    truth = Counter(key(world.shown(row)) for row in world.rows)
    yield from _apart("history", _shown(world, reads, stored_at(reads, str(place), world.fence)), truth)
    state = TableState(Table("l", "landing", ()), Version("l", "l", ()), "", "", {})
    pinned = Pinned(state, str(place), world.fence).stored(reads)
    yield from _apart("history as the gate reads it", _shown(world, reads, pinned), truth)
    world.rows = []
    stage(world, table, world.after, history=False)
    found: Counter[str] = Counter()
    after, policy = world.fence, "ignore" if world.after == "delete" else "stop"
    with suppress(ranges.FeedStopped) if world.stands else nullcontext():
        while part := ranges.next_range(
            str(place), after, log.latest_version(str(place)), chance.randrange(1, 12), policy=policy
        ):  # type: ignore[arg-type]
            if part.files:
                rows = ranges.read(reads, str(place), part, root / "scratch", tuple(world.columns))
                if world.stands and "k" not in rows.columns:
                    break
                found += _shown(world, reads, rows)
            after = part.last
    yield from _apart("live", found, Counter(key(world.shown(row)) for row in world.rows))


def _shown(world: World, session: Any, rows: Any) -> Counter[str]:
    rows.createOrReplaceTempView("read_rows")
    made = session.sql(f"{world.sql} FROM read_rows").toArrow().to_pylist()
    return Counter(key(row) for row in made)


def _apart(what: str, found: Counter[str], truth: Counter[str]) -> Iterator[str]:
    if found != truth:
        yield f"{what}: too many: {list((found - truth).items())[:2]}, missing: {list((truth - found).items())[:2]}"


def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("--many", type=int, default=1, help="worlds from a seed on, with --seed")
    asked = parser.parse_args()
    run = soak.of_worlds(asked, "readings")
    spark = Spark(Settings("readings", "local[2]", SHORT_LIVED), -1)
    count = 0
    try:
        writes, reads = writing(spark), spark.session()
        seeds = run.seeds() if asked.seed is None else iter(range(asked.seed, asked.seed + asked.many))
        for seed in seeds:
            world, root = world_of(seed), Path(tempfile.mkdtemp(prefix="console-readings-"))
            world.target = ""
            try:
                wrong = list(differences(world, root, writes, reads))
            except Exception as error:
                wrong = [f"{type(error).__name__}: {error}"[:600]]
            finally:
                shutil.rmtree(root, ignore_errors=True)
            count += 1
            for said in wrong:
                run.differs(f"seed {seed}: {world}: {said}")
    finally:
        spark.stop()
    return run.summary("readings", {"drawn": count})


if __name__ == "__main__":
    sys.exit(main())
