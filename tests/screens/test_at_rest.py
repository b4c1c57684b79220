"""Drawing while only the lag of live regions changes: their lines, once in a while, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.geometry import Region

from console.model.event import Logged, Recorded
from console.model.status import fold
from console.tui.state import only_lag_differs
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle

pytestmark = pytest.mark.slow


async def test_a_changed_lag_draws_the_line_of_its_region_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Region] = []
    render = Compositor.render_update

    def watched(self: Compositor, *given: Any, **more: Any) -> object:
        drawn.extend(self._dirty_regions)
        return render(self, *given, **more)

    cockpit = s.ScriptedCockpit(*(s.live(region) for region in (s.US, s.EU, s.AP)))
    async with running_app(cockpit, size=(200, 60)) as (app, pilot):
        await settle(pilot)
        monkeypatch.setattr(Compositor, "render_update", watched)
        view = cockpit.views["eu"]
        cockpit.show(replace(view, status=replace(view.status, lag_seconds=77.0)))
        await settle(pilot)
        assert "1 m 17 s" in screen_text(app)
    assert {(place.width, place.height) for place in drawn} <= {(200, 1)}
    assert len({place.y for place in drawn}) <= 2  # the region's line, and the clock


async def test_lag_waits_for_its_turn_and_anything_else_is_drawn_at_once() -> None:
    cockpit = s.ScriptedCockpit(*(s.live(region) for region in (s.US, s.EU)))
    async with running_app(cockpit, repaint=0.3) as (app, pilot):
        await settle(pilot)
        await pilot.pause(0.65)  # what the start has changed is drawn
        before = app.repaints.began
        view = cockpit.views["eu"]
        cockpit.show(replace(view, status=replace(view.status, lag_seconds=77.0)))
        await pilot.pause(0.65)
        assert app.repaints.began == before
        cockpit.show(s.at_gate(s.US))
        await pilot.pause(0.65)
        assert app.repaints.began > before


def test_only_lag_differs_where_nothing_else_does() -> None:
    view = s.live(s.EU)
    lag = replace(view, status=replace(view.status, lag_seconds=9.0, lag_rows=3, lag_commits=2))
    logged = fold(view.status, Recorded(view.status.rollout, 0, s.NOON, Logged("a line")))
    assert only_lag_differs(view, lag)
    for other in (replace(view, link="unreachable"), replace(view, live="r3"), replace(view, status=logged),
                  replace(view, status=replace(view.status, held="failed")), replace(view, guide=("a line",))):  # fmt: skip
        assert not only_lag_differs(view, other)
    assert not only_lag_differs(None, view)
