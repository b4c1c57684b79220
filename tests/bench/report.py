"""The page of measurements, docs/benchmarks.md: `make bench` writes it, and nobody else."""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

VARIABLE = "BENCHMARKS"  # names the page; without it nothing is written
HEAD = """# Benchmarks

Written by `make bench` (`tests/bench`), row by row: a row keeps the time and the load of its own run. Processor seconds are
measured where the machine may be busy; *load* is that of the last minute.

| what | measured | limit | met | at | load |
|---|---|---|---|---|---|
"""
ROW = re.compile(r"^\| (?P<what>[^|]+) \|.*\|$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row: a figure, the limit that it must not exceed, and both as they are printed.

    what  what was measured, one row each
    text  the figure with its unit, and what it was compared with
    """

    what: str
    figure: float
    limit: float
    text: str

    @property
    def met(self) -> bool:
        return self.figure <= self.limit

    def row(self, at: datetime, load: float) -> str:
        met = "yes" if self.met else "**miss**"
        return f"| {self.what} | {self.text} | {self.limit:g} | {met} | {at:%Y-%m-%d %H:%MZ} | {load:.1f} |"


def write(page: Path, measurement: Measurement, at: datetime, load: float) -> None:
    """Put the row into the page, in place of the one that measured the same."""
    lines = page.read_text().splitlines() if page.exists() else []
    head = len(HEAD.splitlines())
    rows = {match["what"]: line for line in lines[head:] if (match := ROW.match(line))}
    rows[measurement.what] = measurement.row(at, load)
    page.write_text(HEAD + "\n".join(rows[what] for what in sorted(rows)) + "\n")


def check(*measurements: Measurement) -> None:
    """Print them, write them where a page is named, and fail if a limit is not met."""
    for measurement in measurements:
        _note(measurement)
    missed = [f"{each.what}: {each.text}, above {each.limit:g}" for each in measurements if not each.met]
    assert not missed, "; ".join(missed)


def _note(measurement: Measurement) -> None:
    print(f"\n{measurement.what}: {measurement.text}{'' if measurement.met else f'; miss of {measurement.limit:g}'}")
    if page := os.environ.get(VARIABLE):
        write(Path(page), measurement, datetime.now(UTC), os.getloadavg()[0])
