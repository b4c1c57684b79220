"""Texts by seed held against Spark for so many minutes: `python -m tests.planning.oracle.soak --minutes 60`.

Every block of seeds that came to its end is a line of docs/sql-oracle.jsonl; one that was broken off leaves none, and
the next call begins with it again.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from tests.planning.oracle import check
from tests.planning.oracle.judge import started

RECORD = Path(__file__).resolve().parents[3] / "docs" / "sql-oracle.jsonl"
BLOCK = 400


def next_seed(record: Path = RECORD) -> int:
    """The first seed that no line tells of."""
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []
    return max((line["seeds"][1] for line in lines), default=0)


def main() -> int:
    parser = argparse.ArgumentParser(description="what we read, send and call the same, held against Spark")
    parser.add_argument("--minutes", type=float, default=60)
    until, wrong = time.monotonic() + 60 * parser.parse_args().minutes, 0
    with started() as spark:
        for said in check.listed(spark):
            wrong += 1
            print(said, flush=True)
        while time.monotonic() < until:
            first = next_seed()
            seeds = range(first, first + BLOCK)
            print(f"seeds {seeds.start} to {seeds.stop - 1}", flush=True)
            found = {
                "expressions": check.expressions(spark, range(first * 10, (first + BLOCK) * 10)),
                "statements": check.statements(spark, seeds),
                "pairs": check.pairs(spark, seeds),
            }
            spark.forget()
            for what, one in found.items():
                for seed, differs in one.wrong:
                    wrong += 1
                    print(f"{what} of seed {seed}: {differs}", flush=True)
            line = {
                "seeds": [seeds.start, seeds.stop],
                "listed": len(check.HARMLESS) + len(check.NEAR_MISSES),
            }
            line |= {what: one.agree for what, one in found.items()}
            line |= {"wrong": sum(len(one.wrong) for one in found.values())}
            with RECORD.open("a") as record:
                record.write(json.dumps(line) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
