"""Worlds by seed for as long as asked: `python -m tests.worlds.soak --minutes 60`. Each seed ends in one line of
docs/landings.jsonl; one that was broken off leaves none, and the next call begins with it again."""

import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from tests import soak
from tests.life.region import SHORT_LIVED
from tests.worlds.carried import carry, restart_of
from tests.worlds.drawn import worlds
from tests.worlds.readings import KINDS, read
from tests.worlds.refused import CODES
from tests.worlds.writers import writing

RECORD = soak.DOCS / "landings.jsonl"
MANY = 9
FIRST = 1


def drawn(seed: int, many: int, reading: int, writes: Any, reads: Any) -> soak.Line:
    """One seed's worlds, and what differs."""
    place, started = Path(tempfile.mkdtemp(prefix="console-landings-")), time.monotonic()
    stored, restart = worlds(seed, many), restart_of(seed)
    differences = read(seed * reading, reading, writes, reads)
    try:
        differences += carry(seed, stored, restart, place, writes) if stored else []
    except Exception as error:
        differences.append(f"seed {seed}: {type(error).__name__}: {error}"[:600])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    kinds = Counter(f"{world.writer} {world.feature or 'plain'}" for world in stored)
    acts = Counter(
        f"{act}, {when}" for world in stored for act, when in ((world.before, "history"), (world.after, "live")) if act
    )
    return {"seed": seed, "worlds": many, "read": reading, "kinds": dict(sorted(kinds.items())), "acts": dict(sorted(acts.items())),
            "agent": restart, "refused": len(CODES) if stored else 0, "seconds": round(time.monotonic() - started),
            "differences": differences}  # fmt: skip


def lives(session: Any) -> bool:
    try:
        return bool(session.range(1).count() == 1)
    except Exception:  # a lost JVM is told in many ways
        return False


def main() -> int:
    parser = soak.arguments(__doc__)
    parser.add_argument("--many", type=int, default=MANY, help="tables a seed that go through an agent")
    parser.add_argument("--read", type=int, default=len(KINDS), help="tables a seed that are read without one")
    asked = parser.parse_args()
    run = soak.Soak(asked, RECORD, max((line["seed"] + 1 for line in soak.lines(RECORD)), default=FIRST))
    spark = SparkHandle(Settings(region="worlds", master="local[2]", conf=SHORT_LIVED), -1)
    try:
        writes, reads = writing(spark), spark.session()
        for seed in run.seeds():
            print(f"seed {seed}", flush=True)
            line = drawn(seed, asked.many, asked.read, writes, reads)
            for item in line["differences"]:
                run.differs(item)
            if line["differences"] and not lives(writes):
                print(f"the writer's Spark has ended: seed {seed} is broken off", flush=True)
                return 1
            run.keep(line)
    finally:
        spark.stop()
    return run.code()


if __name__ == "__main__":
    sys.exit(main())
