"""A chain of three rebuilt tables beside the price of its first, in one rollout: batches or catching up, and receipts, of each."""

import statistics
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check
from tests.bench.rollout_process import BELOW, FIRST
from tests.bench.rollouts import rounds_of, seconds
from tests.bench.size import rows, sized

pytestmark = pytest.mark.bench
ROWS, DAYS, ROUNDS = rows(300_000), 30, sized(1, 2)
TIMES = 1.6


def test_a_chain_of_three_tables_costs_little_more_than_its_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rounds_of("chain", tmp_path, ROWS, DAYS, ROUNDS)
    times = statistics.median(sum(each[table] for table in (FIRST, *BELOW)) / each[FIRST] for each in found)
    checked = statistics.median(each["checks"] / each[FIRST] for each in found)
    parts = ", ".join(f"{table} {seconds(found, table)}" for table in (FIRST, *BELOW))
    of = f"of {ROWS:,} rows"
    with capsys.disabled():
        check(
            Measurement(
                what=f"a chain of three rebuilt tables {of}, beside its first", figure=times, limit=TIMES,
                text=f"{times:.2f} times ({parts} processor seconds, {seconds(found, 'receipts')} of them receipts)",
            ),
            Measurement(
                what=f"the checks of a chain of three rebuilt tables {of}, beside its first", figure=checked, limit=None,
                text=f"{checked:.2f} times ({seconds(found, 'checks')} processor seconds)",
            ),
        )  # fmt: skip
