"""Clean rollouts over real logs, without Spark: each is promoted and watched for some rounds beside a writer of drawn commits,
while agents change. None may be taken back. A run ends in one line of docs/worlds.jsonl.

    python -m tests.agent.clean_rounds --minutes 5
"""

import random
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from deltalake import write_deltalake

from tests import soak
from tests.agent.copying import by_arrow
from tests.agent.test_watch import PromotedRegion, Rounds
from tests.faults.rules.tables import rows

ROUNDS = 10
NEW_AGENT = 0.15  # share of the rounds that another agent begins


class Writer(threading.Thread):
    """Appends drawn rows of drawn days until it is ended."""

    def __init__(self, landing: str, drawn: random.Random) -> None:
        super().__init__(name="writer", daemon=True)
        self._landing, self._drawn, self.over = landing, drawn, threading.Event()

    def run(self) -> None:
        number = 1000
        while not self.over.wait(self._drawn.random() * 0.1):
            several = range(number, number + self._drawn.randint(1, 4))
            appended = rows(*several, day=self._drawn.choice([None, 1, 2, 5]))
            write_deltalake(self._landing, appended, mode="append", partition_by=["day"])
            number += len(several)


def watched(seed: int) -> str:
    """One clean rollout; what was held against it, "" for nothing."""
    drawn = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="console-rounds-") as place:
        region = PromotedRegion(Path(place))
        writer = Writer(region.landing, drawn)
        try:
            watching = region.promote()
            writer.start()
            for _ in range(ROUNDS):
                if drawn.random() < NEW_AGENT:
                    watching = Rounds(controllers=lambda: (region.line,), report=lambda *_: None)
                watching.once()
            (known,) = watching._known.values()
            known.since = 1.0  # its time is over
            watching.once()
            watch = region.status.watched
            fine = not watch.breaches and watch.ended and region.line.live().id == "r2"
            return "" if fine else f"seed {seed}: {watch} {region.status.checks}"
        finally:
            if writer.is_alive():
                writer.over.set()
                writer.join(30)
            region.follower.stop()
            region.line.halt()
            region.follower.join(30)


def main() -> int:
    asked = soak.arguments(__doc__).parse_args()
    known = (line["until"] for line in soak.lines(soak.WORLDS) if line["generator"] == "clean rounds")
    run, number = soak.Soak(asked, soak.WORLDS, max(known, default=1)), 0
    with pytest.MonkeyPatch.context() as patch:
        by_arrow(patch)
        for seed in run.seeds():
            number += 1
            if wrong := watched(seed):
                run.differs(wrong)
    return run.summary("clean rounds", {"drawn": number, "rounds": number * (ROUNDS + 2)})


if __name__ == "__main__":
    sys.exit(main())
