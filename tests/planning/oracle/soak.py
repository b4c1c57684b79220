"""Texts by seed held against Spark for so many minutes: `python -m tests.planning.oracle.soak --minutes 60`.

Every block of seeds that came to its end is a line of docs/sql-oracle.jsonl; one that was broken off leaves none, and
the next call begins with it again.
"""

import sys
import time

from tests import soak
from tests.planning.oracle import check, listed
from tests.planning.oracle.judge import started

RECORD = soak.DOCS / "sql-oracle.jsonl"
BLOCK = 100


def main() -> int:
    asked = soak.arguments(__doc__).parse_args()
    run = soak.Soak(asked, RECORD, max((line["seeds"][1] for line in soak.lines(RECORD)), default=0))
    with started() as spark:
        for item in listed.listed(spark, seeds=range(3)):
            run.differs(item)
        for first in run.seeds(BLOCK):
            began, seeds = time.monotonic(), range(first, first + BLOCK)
            print(f"seeds {seeds.start} to {seeds.stop - 1}", flush=True)
            results = {
                "expressions": check.expressions(spark, range(first * 10, (first + BLOCK) * 10)),
                "statements": check.statements(spark, seeds),
                "pairs": check.pairs(spark, seeds),
            }
            spark.forget()
            for what, one in results.items():
                for seed, differs in one.wrong:
                    run.differs(f"{what} of seed {seed}: {differs}")
            run.keep({
                "seeds": [seeds.start, seeds.stop], "listed": listed.SIZE,
                **{what: one.agree for what, one in results.items()}, "minutes": round((time.monotonic() - began) / 60, 1),
                "wrong": sum(len(one.wrong) for one in results.values()),
            })  # fmt: skip
    return run.code()


if __name__ == "__main__":
    sys.exit(main())
