"""An action that was confirmed for one state of a region is not performed on another, and the message says who was first."""

from dataclasses import replace

import pytest

from console.cli.commands.rollout.confirmed import unmoved
from console.errors import Conflict
from console.model.live import ReleaseRow
from console.model.status import Status
from console.runner.view import RegionView
from tests.runner.worlds import region

SEEN = RegionView(region=region("eu"), status=Status(rollout="web-2", state="live"), live="r2", previous="r1")


def test_who_confirmed_what_another_has_changed_meanwhile_learns_who() -> None:
    gone_back = Status(rollout="web-2", state="rolled-back", decided_by="eve@desk")
    with pytest.raises(Conflict, match="eu: changed while it was being confirmed: r1 is live, rolled-back by eve@desk"):
        unmoved(SEEN, replace(SEEN, status=gone_back, live="r1", previous="r2"))


def test_who_made_another_release_live_is_told_before_the_event_of_it_is_written() -> None:
    row = ReleaseRow(id="r1", state="live", at=1_790_000_000.0, by="eve@desk", host="ferry")
    promoting = replace(SEEN, status=Status(rollout="web-2", state="promoting"), live="r1", previous="r2", live_row=row)
    with pytest.raises(Conflict, match="promoting; made live by eve@desk from ferry at 2026-09-21 14:13:20Z"):
        unmoved(SEEN, promoting)


def test_rows_that_arrived_meanwhile_move_nothing() -> None:
    unmoved(SEEN, replace(SEEN, status=replace(SEEN.status, lag_rows=3), note="3 rows"))
