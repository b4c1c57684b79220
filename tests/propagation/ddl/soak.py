"""Random DDL for as long as asked, beside PostgreSQL's catalog: `python -m tests.propagation.ddl.soak --minutes 60`.

It goes on behind the last seed on record. A run ends in one line of docs/worlds.jsonl; a difference is printed with its
script, and ends the run with 1.
"""

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from tests.propagation.ddl.play import Stage, Verdict, judged
from tests.propagation.servers.postgres import Postgres

RECORD = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "worlds.jsonl"
GENERATOR = "ddl"


def begun() -> int:
    """The first seed that no run on record has drawn."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    return max((line["until"] for line in map(json.loads, lines) if line["generator"] == GENERATOR), default=0)


def run(minutes: float, first: int) -> dict[str, object]:
    postgres = Postgres()
    started, seed = time.monotonic(), first
    verdicts: Counter[Verdict] = Counter()
    try:
        stage = Stage(postgres.start())
        while time.monotonic() - started < minutes * 60:
            found = judged(stage, seed)
            verdicts[found.verdict] += 1
            if found.differences:
                print(
                    f"seed {seed}: {found.differences}\n--- before\n{found.script.setup}\n--- script\n{found.script.body}"
                )
            seed += 1
    finally:
        postgres.stop()
    return {
        "generator": GENERATOR, "at": datetime.now(UTC).isoformat(timespec="seconds"), "from": first, "until": seed,
        "minutes": round((time.monotonic() - started) / 60, 1), **{verdict.value: count for verdict, count in verdicts.items()},
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    line = run(given.minutes, begun() if given.seed is None else given.seed)
    with RECORD.open("a") as record:
        record.write(json.dumps(line) + "\n")
    print(json.dumps(line))
    raise SystemExit(1 if line.get(Verdict.WRONG.value) else 0)
