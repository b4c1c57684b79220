"""Builds above the region's threshold are planned for its second Spark, and the plan says so and prices them there."""

from dataclasses import replace

import pytest

from console.cli.plan.text import plan_text
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import BackfillSpark, Prices, Region, Spark
from console.model.step import Backfill
from console.planning import plan
from tests.planning.test_fleet import WIDER
from tests.planning.world import REGION, live

SECOND = Spark("local[8]")
PRICED = replace(REGION, spark=Spark("local[4]"), prices=Prices(core_hour=3.6, currency="EUR"))
NONE = 1 << 60


def build_of(done: Plan) -> Backfill:
    (build,) = (step for step in done.steps if isinstance(step, Backfill))
    return build


def planned(
    second: BackfillSpark | None, region: Region = REGION, desired: Pipeline = WIDER, here: Live | None = None
) -> Plan:
    return plan(desired, here or live(), replace(region, backfill_spark=second), "test")


def with_limits(rows: int, bytes: int) -> BackfillSpark:
    return BackfillSpark(spark=SECOND, rows=rows, bytes=bytes)


@pytest.mark.parametrize(
    ("more_rows", "more_bytes", "second"),
    [(0, 0, False), (-1, 0, True), (0, -1, True), (-1, -1, True), (1, 1, False)],
)
def test_a_build_of_more_rows_or_more_bytes_than_that_runs_on_the_second_spark(
    more_rows: int, more_bytes: int, second: bool
) -> None:
    build = build_of(planned(None))
    done = planned(with_limits(build.rows + more_rows, build.bytes + more_bytes))
    assert build_of(done).second_spark is second
    assert replace(build_of(done), second_spark=False) == build
    assert ("second Spark" in plan_text([done])) is second
    assert plan_text([done], explain=True).count("on the second Spark") == 2 * second


def test_without_numbers_it_is_a_hundred_million_rows_or_fifty_gibibytes() -> None:
    usual = BackfillSpark(spark=SECOND)
    assert not usual.takes(100_000_000, 50 * 1024**3)
    assert usual.takes(100_000_001, 0)
    assert usual.takes(0, 50 * 1024**3 + 1)
    assert not build_of(planned(usual)).second_spark


def test_a_region_without_a_second_spark_has_the_same_plan_as_ever() -> None:
    done = planned(None)
    assert "second" not in plan_text([done], explain=True)
    assert planned(with_limits(NONE, NONE)).digest() == done.digest()
    assert planned(with_limits(0, NONE)).digest() != done.digest()


def test_a_build_is_priced_by_the_cores_of_the_spark_on_which_it_runs() -> None:
    here, there = planned(None, PRICED), planned(with_limits(0, NONE), PRICED)
    assert here.price.money > 0
    assert there.price.money == pytest.approx(here.price.money * 2)
    assert there.price.seconds == here.price.seconds
    assert there.price.money == pytest.approx(sum(node.price.money for node in there.nodes))
