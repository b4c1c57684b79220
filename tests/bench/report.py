"""What a bench measures, put on record: printed always, and written by `python -m tests.bench` alone (docs/benchmarks.md).

A figure that misses its goal is marked and fails nothing: the page has to explain it. What a test asserts beside it, that rows are
right, does fail.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench import page
from tests.bench.record import Record, Row, now

VARIABLE = "BENCHMARKS"  # a `Run` as JSON; without it nothing is written


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row: a figure, its goal, and both as they are printed.

    what      what was measured, one row each; with its size, where there are several
    limit     the figure must not exceed it; None for a figure without a goal
    text      the figure with its unit, and what it was compared with
    at_least  the figure must reach the limit instead
    """

    what: str
    figure: float
    limit: float | None
    text: str
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """None without a goal."""
        if self.limit is None:
            return None
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def __str__(self) -> str:
        missed = "; miss" if self.met is False else ""
        return f"{self.what}: {self.text}; goal {page.goal(self.limit, self.at_least)}{missed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One part that is run.

    commit   as of `record.commit`, at the beginning of the whole run, which writes into the tree
    machine  its name in the record
    record   path of the record; the page lies beside it
    """

    part: str
    commit: str
    machine: str
    record: str

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}


def check(*measurements: Measurement) -> None:
    """Print them, and put them on record where a run says so."""
    text = os.environ.get(VARIABLE)
    for measurement in measurements:
        print(f"\n{measurement}")
        if text:
            write(Run(**json.loads(text)), measurement, now(), os.getloadavg()[0])


def write(run: Run, measurement: Measurement, at: str, load: float) -> None:
    """Put the row on record and on the page, in place of the one that measured the same."""
    path = Path(run.record)
    record = Record.read(path)
    record.rows[measurement.what] = Row(
        part=run.part,
        what=measurement.what,
        text=measurement.text,
        figure=measurement.figure,
        limit=measurement.limit,
        at_least=measurement.at_least,
        met=measurement.met,
        commit=run.commit,
        machine=run.machine,
        at=at,
        load=round(load, 1),
    )
    keep(record, path)


def keep(record: Record, path: Path) -> None:
    """Write the record, and the page beside it."""
    record.write(path)
    path.with_suffix(".md").write_text(page.rendered(record, page.explanations()))
