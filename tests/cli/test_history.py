"""`console status --history` and what `console show` says of a rollout's course, in front of regions in memory."""

import json
import time
from typing import Any

import pytest

from console.cli.history_text import history_text, sparkline
from console.drivers.fake import FakeRegion
from console.errors import Unreachable
from console.model.event import BatchDone, DriverLost, Event, Logged, Recorded, StepStarted
from console.model.incident import Incident, SparkBack, TryFailed, WaitBegan, WaitEnded
from console.model.measured import FeedSample
from tests.cli.conftest import World

STEP = "backfill/requests/parse"


def kept(region: FakeRegion, now: float) -> None:
    for tick in range(30):
        for feed in ("", "parse"):
            at = now - 10 * (29 - tick)
            region.samples.append(
                FeedSample(at=at, feed=feed, rows=tick * 10.0, lag=0.9, behind=tick, backfill=100.0 * tick)
            )


@pytest.mark.slow
def test_status_shows_the_last_hours_as_text_and_data(deployed: World) -> None:
    kept(deployed.regions["eu"], time.time())
    shown = deployed.call("status", "--history", "1h")
    assert shown.exit_code == 0, shown.output
    rows = {tuple(line.split()[:3]): line for line in shown.stdout.splitlines()}
    assert rows[("eu", "all", "rows/s")].split()[3:6] == ["290", "0", "290"]
    assert "▁▂" in rows[("eu", "all", "rows/s")] or "█" in rows[("eu", "all", "rows/s")]
    assert ("eu", "parse", "lag,") in rows
    assert ("eu", "all", "history") in rows
    assert ("eu", "parse", "history") not in rows
    assert "no samples: no agent has run, or an older one" in rows[("us", "no", "samples:")]
    data = json.loads(deployed.call("status", "--history", "1h", "--output", "json").stdout)
    assert data["format_version"] == 1
    by_region = {region["region"]: region["history"] for region in data["regions"]}
    assert by_region["us"] == {"hours": 1.0, "samples": []}
    assert len(by_region["eu"]["samples"]) == 60
    assert by_region["eu"]["samples"][-2]["history_rows_per_second"] == 2900.0
    assert "history" not in json.loads(deployed.call("status", "--output", "json").stdout)["regions"][0]


@pytest.mark.slow
def test_a_region_that_cannot_be_reached_is_named_once_and_the_others_are_shown(deployed: World) -> None:
    kept(deployed.regions["us"], time.time())
    deployed.regions["eu"].reachable = False
    shown = deployed.call("status", "--history", "30m")
    assert shown.exit_code == Unreachable("x").exit_code
    assert "us" in shown.stdout
    assert "290" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("text", ["1", "h", "-1h", "0m", "25h", "1w", "1.5h", ""])
def test_a_time_that_is_none_is_refused_with_an_example(text: str, deployed: World) -> None:
    refused = deployed.call("status", "--history", text)
    assert refused.exit_code == 64
    assert "30m or 1h" in refused.stderr


def test_a_chart_is_empty_where_nothing_was_measured() -> None:
    assert sparkline([(0.0, 1.0), (90.0, 8.0)], 0.0, 100.0, 10) == "▁        █"[:10].replace("▁", "▂")
    assert sparkline([], 0.0, 100.0, 4) == "    "
    assert sparkline([(0.0, 0.0)], 0.0, 100.0, 4) == "▁   "
    assert "2 min" in history_text({"eu": [FeedSample(at=0.0, feed="", rows=1, lag=0, behind=0)]}, 1.0, 130.0)


def recorded(*events: tuple[float, Event | Incident]) -> list[tuple[float, Event]]:
    return [
        (at, e if not isinstance(e, Incident) else Logged("a line", "info", e)) for at, e in events
    ]  # fmt: skip


def course(world: World, events: list[tuple[float, Event]]) -> dict[str, Any]:
    """What `show` says of a rollout of eu after whose first event these were stored."""
    disk = world.regions["eu"].disk
    first = disk.stored[0]
    disk.stored[:] = [first] + [
        Recorded(first.rollout, seq, first.at + at, event) for seq, (at, event) in enumerate(events, 2)
    ]
    shown = world.call("show", first.rollout, "--region", "eu", "--output", "json")
    assert shown.exit_code == 0, shown.output
    output: dict[str, Any] = json.loads(shown.stdout)["regions"][0]
    return output


@pytest.mark.slow
def test_show_has_slices_tries_waits_losses_and_where_the_time_went(deployed: World) -> None:
    fenced = [r.event for r in deployed.regions["eu"].disk.stored if type(r.event).__name__ == "Fenced"]
    batches = [r.event for r in deployed.regions["eu"].disk.stored if isinstance(r.event, BatchDone)]
    assert batches
    first = deployed.regions["eu"].disk.stored[0]
    failed = TryFailed(
        step=STEP, label="2026-11-07", first=1, last=1, cause="memory", why="heap", number=1, of=3, rows=60, rows_next=15, seconds=4.0
    )  # fmt: skip
    result = course(
        deployed,
        recorded(
            (1, fenced[0]),
            (13, WaitBegan(step=STEP, cause="lag", why="live rows are 70 s behind", since=first.at + 10)),
            (40, WaitEnded(step=STEP, cause="lag", seconds=30.0)),
            (50, failed),
            (60, batches[0]),
            (70, WaitBegan(step=STEP, cause="hours", why="outside of 22:00-06:00", since=first.at + 67)),
            (90, StepStarted(STEP, away_since=first.at + 80)),
            (100, DriverLost(STEP, "its memory ran out")),
            (130, SparkBack(step=STEP, seconds=30.0)),
        ),
    )
    assert [(wait["cause"], wait["seconds"]) for wait in result["waits"]] == [("lag", 30.0), ("hours", 13.0)]
    assert [(loss["why"], loss["seconds"]) for loss in result["spark_losses"]] == [("its memory ran out", 30.0)]
    assert [(tried["label"], tried["rows_next"], tried["cause"]) for tried in result["tries"]] == [
        ("2026-11-07", 15, "memory")
    ]
    assert sum(part["seconds"] for part in result["account"]) == pytest.approx(result["seconds"], abs=0.01)
    assert {"lag", "hours"} <= {part["cause"] for part in result["account"]}
    (step,) = result["slices"]
    assert sum(day["slices"] for day in step["days"]) == fenced[0].slices
    text = deployed.call("show", first.rollout, "--region", "eu").stdout
    assert "2026-11-07: try 1 of 3 failed after 4 s: heap; next at most 15 rows" in text
    assert "waited (lag)" in text
