"""Random ClickHouse schemas and migrations for as long as asked: `python -m tests.propagation.worlds.soak --minutes 60`.

It goes on behind the last seed on record. A run ends in one line of docs/worlds.jsonl; a difference is printed with the
statements of its world, and ends the run with 1.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.worlds.live import NO_WORLD, judged

RECORD = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "worlds.jsonl"
GENERATOR = "stores"


def begun() -> int:
    """The first seed that no run on record has drawn."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    return max((line["until"] for line in map(json.loads, lines) if line["generator"] == GENERATOR), default=0)


def run(minutes: float, first: int) -> dict[str, object]:
    started, seed = time.monotonic(), first
    found: Counter[str] = Counter(carried=0, refused=0, unmade=0, wrong=0)
    with tempfile.TemporaryDirectory(prefix="console-worlds-") as folder:
        server = ClickHouse(Path(folder)).start()
        try:
            while time.monotonic() - started < minutes * 60:
                found[verdict(server, seed)] += 1
                seed += 1
        finally:
            server.stop()
    took = round((time.monotonic() - started) / 60, 1)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"generator": GENERATOR, "at": at, "from": first, "until": seed, "minutes": took, **found}


def verdict(server: ClickHouse, seed: int) -> str:
    try:
        why = judged(server, seed)
    except AssertionError as error:
        print(f"{error}\n  {error.__cause__}", flush=True)
        return "wrong"
    if why is None:
        return "carried"
    return "unmade" if why == NO_WORLD else "refused"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    line = run(given.minutes, begun() if given.seed is None else given.seed)
    with RECORD.open("a") as record:
        record.write(json.dumps(line) + "\n")
    print(json.dumps(line))
    raise SystemExit(1 if line["wrong"] else 0)
