"""A backfill by the agent, from an accepted plan to its gate, beside the plain `INSERT … SELECT` of the same rows in the same warm JVM."""

import statistics
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check
from tests.bench.rollouts import Figures, rounds_of, seconds
from tests.bench.size import rows, sized

pytestmark = pytest.mark.bench
ROWS, DAYS = rows(600_000), 30
ROUNDS = sized(1, 3 if ROWS <= 3_000_000 else 1)
TINY_DAYS, TINY_ROWS = sized(60, 365), 1_000
THROUGHPUT = 0.95  # of the plain INSERT's
A_DAY = 30  # times as fast as a commit a day


def shares(rounds: list[Figures], *of: str) -> float:
    """The median over the rounds of what these parts cost, in plain INSERTs."""
    return statistics.median(sum(each[part] for part in of) / each["bare"] for each in rounds)


def test_a_backfill_costs_little_more_than_the_bare_insert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rounds_of("whole", tmp_path, ROWS, DAYS, ROUNDS)
    of = f"of {ROWS:,} rows over {DAYS} days"
    bare = f"the plain INSERT {seconds(found, 'bare')} processor seconds"
    speed = 1 / shares(found, "batches", "receipts")
    whole = shares(found, "total")
    parts = ("batches", "receipts", "checks", "other")
    with capsys.disabled():
        check(
            Measurement(
                what=f"throughput of a backfill {of}, receipts included, beside the plain INSERT", figure=speed, limit=THROUGHPUT,
                at_least=True, text=f"{speed:.2f} times ({bare}, batches and receipts {seconds(found, 'batches', 'receipts')})",
            ),
            *(
                Measurement(
                    what=f"{part} of a rollout {of}, beside the plain INSERT", figure=shares(found, part), limit=None,
                    text=f"{shares(found, part):.2f} times ({seconds(found, part)} processor seconds)",
                )
                for part in parts
            ),
            Measurement(
                what=f"a rollout {of}, from its acceptance to its gate, beside the plain INSERT", figure=whole, limit=None,
                text=f"{whole:.2f} times ({seconds(found, 'total')} processor seconds)",
            ),
        )  # fmt: skip


def test_many_tiny_days_cost_a_small_part_of_a_commit_a_day(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rounds_of("daily", tmp_path, TINY_DAYS * TINY_ROWS, TINY_DAYS)
    times = 1 / shares(found, "batches", "receipts")
    text = f"{times:.1f} times ({seconds(found, 'bare')} and {seconds(found, 'batches')} + {seconds(found, 'receipts')} processor seconds)"
    what = f"a commit a day, beside batches and receipts, of {TINY_DAYS} days of {TINY_ROWS:,} rows"
    with capsys.disabled():
        check(Measurement(what=what, figure=times, limit=A_DAY, text=text, at_least=True))
