"""Random DDL for as long as asked, beside PostgreSQL's catalog: `python -m tests.propagation.ddl.soak --minutes 60`.

It goes on behind the last seed on record. A run ends in one line of docs/worlds.jsonl; a difference is printed with its
script, and ends the run with 1.
"""

import sys
from collections import Counter

from tests import soak
from tests.propagation.ddl.play import DdlDatabase, Verdict, judged
from tests.propagation.servers.postgres import Postgres


def main() -> int:
    run = soak.of_worlds(soak.arguments(__doc__).parse_args(), "ddl")
    figures = Counter({verdict.value: 0 for verdict in Verdict})
    postgres = Postgres()
    try:
        database = DdlDatabase(postgres.start())
        for seed in run.seeds():
            result = judged(database, seed)
            figures[result.verdict.value] += 1
            if result.differences:
                before, script = result.script.setup, result.script.body
                run.differs(f"seed {seed}: {result.differences}\n--- before\n{before}\n--- script\n{script}")
    finally:
        postgres.stop()
    return run.summary("ddl", figures)


if __name__ == "__main__":
    sys.exit(main())
