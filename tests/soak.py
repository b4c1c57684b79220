"""What the long runs of all generators share: arguments, the seed to go on with, the deadline, lines on record, exit code.

A record is a file of JSON lines in `docs`. What was broken off leaves none, and the next run begins with it again.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
WORLDS = DOCS / "worlds.jsonl"  # of all generators that have no record of their own
Line = dict[str, Any]


def lines(record: Path) -> list[Line]:
    """The entries of a record, oldest first; [] where there is none."""
    return [json.loads(line) for line in record.read_text().splitlines() if line] if record.is_file() else []


def append(record: Path, line: Mapping[str, object]) -> None:
    with record.open("a", encoding="utf-8") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


def arguments(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, help="this one alone, without a line on record")
    parser.add_argument(
        "--from", dest="first", type=int, help="begin with this seed, not behind the last one on record"
    )
    parser.add_argument("--until", type=int, help="end before this seed, so that two runs may share what is left")
    return parser


class Soak:
    """One long run of a generator.

    first  the seed after the last one on record
    """

    def __init__(self, asked: argparse.Namespace, record: Path, first: int) -> None:
        self._record, self._alone = record, asked.seed is not None
        self._started = self._kept = time.monotonic()
        self._until = self._started + 60 * asked.minutes
        begin = first if asked.first is None else asked.first
        self._first = self._next = asked.seed if self._alone else begin
        self._last: int | None = asked.until
        self._differences = 0

    def seeds(self, step: int = 1) -> Iterator[int]:
        """The first seed of each block of so many, until the time is over."""
        while self._next == self._first or (not self._alone and time.monotonic() < self._until):
            if self._last is not None and self._next >= self._last:
                return
            yield self._next
            self._next += step

    def differs(self, message: str) -> None:
        self._differences += 1
        print(message, flush=True)

    def keep(self, line: Mapping[str, object]) -> None:
        if not self._alone:
            append(self._record, line)
        print(json.dumps(line, ensure_ascii=False), flush=True)

    def code(self) -> int:
        return 1 if self._differences else 0

    def summary(self, generator: str, figures: Mapping[str, int]) -> int:
        """Keep one line of all that this run drew.

        returns  the exit code
        """
        self._account(generator, (self._first, self._next), self._started, {**figures, "wrong": self._differences})
        return self.code()

    def drew(self, generator: str, seed: int, figures: Mapping[str, object], *wrong: str) -> None:
        """Keep a line of one seed. wrong: what was held against it; "" is nothing"""
        held = [why for why in wrong if why]
        for why in held:
            self.differs(f"{seed}: {why}")
        since, self._kept = self._kept, time.monotonic()
        self._account(generator, (seed, seed + 1), since, {**figures, "wrong": len(held)})

    def _account(self, generator: str, seeds: tuple[int, int], since: float, figures: Mapping[str, object]) -> None:
        self.keep({
            "generator": generator, "at": datetime.now(UTC).isoformat(timespec="seconds"), "from": seeds[0],
            "until": seeds[1], "minutes": round((time.monotonic() - since) / 60, 1), **figures,
        })  # fmt: skip


def of_worlds(asked: argparse.Namespace, generator: str, first: int = 0) -> Soak:
    """A run whose line goes to the record of many generators."""
    messages: Sequence[Line] = [line for line in lines(WORLDS) if line["generator"] == generator]
    return Soak(asked, WORLDS, max((line["until"] for line in messages), default=first))
