"""What an hour of following takes, as measured: the record of `tests/bench/test_hour.py`, and what follows for a day. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.parts import ROOT

RECORD = ROOT / "docs" / "scale-hour.json"
HOUR, DAY = 3_600, 24 * 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class HourRecord:
    """Following of two tables, one below the other. at, commit: of the measuring

    rate                rows a second;  clock: for so many seconds
    seconds             of processors
    commits, log_bytes  of both tables, and of their JSON
    compaction_seconds, compaction_bytes  processor seconds of one compaction of both afterwards, and what it adds to their JSON
    """

    at: str
    commit: str
    rate: int
    clock: int
    seconds: float
    commits: int
    log_bytes: int
    compaction_seconds: float
    compaction_bytes: int

    @classmethod
    def read(cls, path: Path) -> "HourRecord":
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        """A record of a longer time stays."""
        if not path.is_file() or self.read(path).clock <= self.clock:
            path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    def over(self, clock: int) -> Sequence[tuple[str, str]]:
        """What so many seconds take."""
        times = clock / self.clock
        return (
            ("rows", f"{self.rate * clock:,}"),
            ("processor time", f"{self.seconds * times / HOUR:,.2f} core hours, {self.seconds / self.clock:.0%} of a core"),
            ("commits of the two tables", f"{self.commits * times:,.0f}"),
            ("their logs, before the clean-up", f"{self.log_bytes * times / 1e6:,.1f} MB"),
        )  # fmt: skip


def known() -> HourRecord | None:
    """None where none was measured."""
    return HourRecord.read(RECORD) if RECORD.is_file() else None
