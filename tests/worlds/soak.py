"""Worlds by seed for as long as asked: `python -m tests.worlds.soak --minutes 60`. Each seed ends in one line of
docs/landings.jsonl; one that was broken off leaves none, and the next call begins with it again."""

import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from console.agent.session import Settings, Spark
from tests import soak
from tests.life.region import SHORT_LIVED
from tests.worlds.carried import carry

RECORD = soak.DOCS / "landings.jsonl"
MANY = 9
FIRST = 1


def writing(spark: Spark) -> Any:
    """A session that writes by path, as a stranger's does."""
    return spark.session(spark__sql__runSQLOnFiles="true")


def drawn(seed: int, session: Any) -> soak.Line:
    """One seed's worlds, and what differs."""
    place, started = Path(tempfile.mkdtemp(prefix="console-worlds-")), time.monotonic()
    try:
        done = carry(seed, MANY, place, session)
        differences = done.differences
        kinds = Counter(f"{world.writer} {world.feature or 'plain'}" for world in done.worlds)
    except Exception as error:
        differences, kinds = [f"seed {seed}: {type(error).__name__}: {error}"[:600]], Counter()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return {"seed": seed, "worlds": MANY, "kinds": dict(sorted(kinds.items())),
            "seconds": round(time.monotonic() - started), "differences": differences}  # fmt: skip


def main() -> int:
    asked = soak.arguments(__doc__).parse_args()
    run = soak.Soak(asked, RECORD, max((line["seed"] + 1 for line in soak.lines(RECORD)), default=FIRST))
    spark = Spark(Settings("worlds", "local[2]", SHORT_LIVED), -1)
    try:
        session = writing(spark)
        for seed in run.seeds():
            print(f"seed {seed}", flush=True)
            line = drawn(seed, session)
            for said in line["differences"]:
                run.differs(said)
            run.keep(line)
    finally:
        spark.stop()
    return run.code()


if __name__ == "__main__":
    sys.exit(main())
