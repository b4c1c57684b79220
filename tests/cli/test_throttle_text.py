"""The throttles shown in a plan; a saved plan with other throttles is stale."""

from dataclasses import replace

from console.cli.commands.run import changes_since
from console.cli.plan.text import plan_text
from console.model.policy import Throttle
from tests.cli import sample


def test_a_plan_says_what_its_batches_wait_for_region_by_region() -> None:
    eu, us, *_ = sample.plans()
    night = Throttle(lag_seconds=120.0, hours="22:00-06:00", zone="Europe/Madrid", query="SELECT true")
    text = plan_text([replace(eu, throttle=night, quarantine_rows=5), replace(us, throttle=Throttle(lag_seconds=60.0))])
    messages = [line.strip() for line in text.splitlines() if "batches begin only" in line]
    assert messages == [
        f"in {eu.region} batches begin only from 22:00 to 06:00 Europe/Madrid, while live rows are at most 2 min 00 s behind,"
        " while throttle.query answers true; up to 5 rows that do not convert may go to quarantine",
        f"in {us.region} batches begin only while live rows are at most 1 min 00 s behind",
    ]
    assert "batches begin only" not in plan_text([eu, us])


def test_a_plan_of_another_throttle_or_budget_no_longer_holds() -> None:
    plan = sample.plans()[0]
    for other in (replace(plan, throttle=Throttle(lag_seconds=60.0)), replace(plan, quarantine_rows=1)):
        assert [change.text for change in changes_since(plan, other)] == [
            "the region's throttle or quarantine_rows have changed"
        ]
    assert changes_since(plan, plan) == []
