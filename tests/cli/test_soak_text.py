"""How the checks at a gate go on: in `status` and at the gate."""

import time

import pytest

from console.cli.status_text import gate_text, region_data, status_text
from console.model.region import Region
from console.model.soak import SoakProgress, soak_text
from console.model.status import Status
from console.runner.view import RegionView

REGION = Region(name="eu", warehouse="/w/eu")


def test_status_and_the_gate_say_when_the_last_round_was_and_only_there() -> None:
    soak = SoakProgress(waited=1080, clean=3, rounds=12, at=time.time() - 45)
    status = Status(rollout="web-2", release="r2", state="awaiting-confirmation", soak=soak)
    view = RegionView(region=REGION, link="connected", status=status, live="r1")
    for text in (status_text([view], {}), gate_text(view, time.time())):
        assert "checks go on: 12 rounds, the last one 40 s ago" in text
    assert region_data(view)["status"]["soak"]["clean"] == 3
    before = RegionView(region=REGION, link="connected", status=Status(state="live"), live="r1")
    assert "checks go on" not in status_text([before], {})


@pytest.mark.parametrize(
    ("soak", "text"),
    [
        (SoakProgress(), "checks go on: no round has ended yet"),
        (SoakProgress(rounds=1, at=100.0), "checks go on: 1 round, the last one 40 s ago"),
        (SoakProgress(rounds=9, at=100.0, unable="its disk is full"), "checks do not go on: its disk is full"),
    ],
)
def test_a_round_that_could_not_be_completed_is_told_with_its_reason(soak: SoakProgress, text: str) -> None:
    assert soak_text(soak, 145.0) == text
