"""The parts of `make bench` and `make bench-long`: what each measures, by which tests, in which size. A new one is one line of `PARTS`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.size import ROWS_VARIABLE, SIZE_VARIABLE, Size

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("tests", "bench")
MOST_MINUTES: Mapping[Size, float] = {Size.SMALL: 25, Size.LONG: 240}
# number of the goals → their heading
TOPICS = {
    1: "Backfill",
    2: "Fewer passes",
    3: "Beside other tools",
    4: "A native engine",
    5: "Following",
    6: "Promotion",
    7: "Regions at rest",
    8: "Starting and planning",
    9: "The console itself",
    10: "Aggregates",
    11: "Sizing",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Tests that are run together, in one process.

    topic    number of its goals, as of `TOPICS`
    tests    files below tests/bench, or node ids of pytest
    minutes  expected on two idle cores, once set up
    rows     of history, where its benches take that from outside; 0 for their own number
    """

    name: str
    topic: int
    size: Size
    minutes: float
    tests: tuple[str, ...]
    rows: int = 0

    @property
    def nodes(self) -> tuple[str, ...]:
        """As pytest is told, from the repository's root."""
        return tuple(str(FOLDER / test) for test in self.tests)

    @property
    def files(self) -> frozenset[str]:
        return frozenset(test.partition("::")[0] for test in self.tests)

    @property
    def environment(self) -> dict[str, str]:
        return {SIZE_VARIABLE: self.size.value, ROWS_VARIABLE: str(self.rows or "")}


def small(name: str, topic: int, minutes: float, *tests: str, rows: int = 0) -> Part:
    return Part(name=name, topic=topic, size=Size.SMALL, minutes=minutes, tests=tests, rows=rows)


def long(name: str, topic: int, minutes: float, *tests: str, rows: int = 0) -> Part:
    return Part(name=name, topic=topic, size=Size.LONG, minutes=minutes, tests=tests, rows=rows)


WAKES = "test_follow.py::test_a_region_that_wakes_reads_its_first_row_soon"
LAGS = "test_follow.py::test_a_row_is_readable_two_tables_further_within_seconds"
BESIDE = "test_follow.py::test_a_row_is_readable_soon_beside_a_backfill"
BACKLOG = "test_follow.py::test_a_backlog_drains_at_half_the_throughput_of_the_bare_insert"
LIST_KEYS = "test_keys.py::test_a_key_costs_at_most_three_times_a_bare_table_s_however_much_the_regions_tell"
PANE_KEYS = "test_keys.py::test_a_key_costs_at_most_one_and_a_half_times_a_bare_table_s_on_every_screen"

PARTS = (
    small("backfill", 1, 4, "test_backfill.py", "test_batch.py", rows=600_000),
    small("chain", 2, 4, "test_chain.py", "test_parsing.py", rows=300_000),
    small("following", 5, 4, LAGS, BESIDE, BACKLOG, rows=300_000),
    small("promotion", 6, 2, "test_alternations.py", "test_promotion.py"),
    small("idle", 7, 3, "test_idle.py", WAKES),
    small("starting", 8, 2, "test_spark_start.py", "test_starting.py", "test_planner.py"),
    small("console", 9, 5, "test_runner.py", "test_screen.py", "test_large_region.py", "test_schema_verify.py", LIST_KEYS),
    small("aggregates", 10, 1, "test_aggregate_read.py"),
    long("backfill-3m", 1, 10, "test_backfill.py", rows=3_000_000),
    long("backfill-10m", 1, 25, "test_backfill.py::test_a_backfill_costs_little_more_than_the_bare_insert", rows=10_000_000),
    long("comparison", 1, 6, "test_comparison.py"),
    long("chain-3m", 2, 9, "test_chain.py", rows=3_000_000),
    long("sqlmesh", 3, 12, "test_sqlmesh.py"),
    long("dbt", 3, 9, "test_dbt.py"),
    long("native", 4, 5, "test_native.py", rows=3_000_000),
    long("lags", 5, 22, LAGS, BESIDE, BACKLOG, rows=3_000_000),
    long("alternations", 6, 15, "test_alternations.py", "test_landing_switch.py"),
    long("regions-at-rest", 7, 6, "test_idle.py"),
    long("demo", 9, 14, "test_demo.py"),
    long("events", 9, 4, "test_memory.py"),
    long("keys", 9, 10, PANE_KEYS),
    long("partial-commits", 10, 8, "test_aggregate_read.py"),
    long("sizes", 11, 20, "test_scale.py"),
    long("hour", 11, 65, "test_hour.py"),
)  # fmt: skip
BY_NAME = {part.name: part for part in PARTS}


def of_size(size: Size) -> tuple[Part, ...]:
    return tuple(part for part in PARTS if part.size is size)
