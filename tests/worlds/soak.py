"""Worlds by seed for as long as asked: `python -m tests.worlds.soak --minutes 60`. Each seed ends in one line of
docs/landings.jsonl; one that was broken off leaves none, and the next call begins with it again."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from console.agent.session import Settings, Spark
from tests.life.region import SHORT_LIVED
from tests.worlds.carried import carry

RECORDS = Path(__file__).resolve().parents[2] / "docs" / "landings.jsonl"
MANY = 9
FIRST = 1


def writing(spark: Spark) -> Any:
    """A session that writes by path, as a stranger's does."""
    return spark.session(spark__sql__runSQLOnFiles="true")


def seeds() -> int:
    """The seed after the last one on record."""
    lines = RECORDS.read_text().splitlines() if RECORDS.is_file() else []
    return max((json.loads(line)["seed"] for line in lines), default=FIRST - 1) + 1


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=60)
    asked.add_argument("--seed", type=int, help="this one alone, without a record")
    minutes, only = (getattr(asked.parse_args(), name) for name in ("minutes", "seed"))
    spark = Spark(Settings("worlds", "local[2]", SHORT_LIVED), -1)
    session, wrong, deadline = writing(spark), 0, time.monotonic() + minutes * 60
    seed = seeds() if only is None else only
    try:
        while time.monotonic() < deadline:
            place, started = Path(tempfile.mkdtemp(prefix="console-worlds-")), time.monotonic()
            print(f"seed {seed}", flush=True)
            try:
                done = carry(seed, MANY, place, session)
                differences = done.differences
                kinds = Counter(f"{world.writer} {world.feature or 'plain'}" for world in done.worlds)
            except Exception as error:
                differences, kinds = [f"seed {seed}: {type(error).__name__}: {error}"[:600]], Counter()
            finally:
                shutil.rmtree(place, ignore_errors=True)
            print("\n".join(differences) or f"  {MANY} worlds, all equal", flush=True)
            wrong += len(differences)
            if only is not None:
                break
            record = {"seed": seed, "worlds": MANY, "kinds": dict(sorted(kinds.items())),
                      "seconds": round(time.monotonic() - started), "differences": differences}  # fmt: skip
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            seed += 1
    finally:
        spark.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
