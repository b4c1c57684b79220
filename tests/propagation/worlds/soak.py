"""Random ClickHouse schemas and migrations for as long as asked: `python -m tests.propagation.worlds.soak --minutes 60`.

It goes on behind the last seed on record. A run ends in one line of docs/worlds.jsonl; a difference is printed with the
statements of its world, and ends the run with 1.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests import soak
from tests.propagation.servers.clickhouse import ClickHouse
from tests.propagation.worlds.live import NO_WORLD, judged


def main() -> int:
    run = soak.of_worlds(soak.arguments(__doc__).parse_args(), "stores")
    counts: Counter[str] = Counter(carried=0, refused=0, unmade=0)
    with tempfile.TemporaryDirectory(prefix="console-stores-") as folder:
        server = ClickHouse(Path(folder)).start()
        try:
            for seed in run.seeds():
                try:
                    why = judged(server, seed)
                except AssertionError as error:
                    run.differs(f"{error}\n  {error.__cause__}")
                else:
                    counts["carried" if why is None else "unmade" if why == NO_WORLD else "refused"] += 1
        finally:
            server.stop()
    return run.summary("stores", counts)


if __name__ == "__main__":
    sys.exit(main())
