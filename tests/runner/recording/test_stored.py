"""A rollout played from what its region has stored of it."""

import pytest

from console.model.event import Accepted, Entered, Recorded
from console.model.measured import FeedSample
from console.model.region import Region
from console.runner.recording.player import Playback
from console.runner.recording.stored import stored_recording
from console.tui.fleet.figures import behind, lag

BEGAN = 1_794_000_000.0
EU = Region(name="eu", warehouse="/w/eu")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, ("", "")), (11.0, ("3 m 35 s", "15.1k")), (25.0, ("4.0 s", "280"))]
)
async def test_the_lag_that_is_shown_is_that_of_the_last_sample(seconds: float, shown: tuple[str, str]) -> None:
    events = [
        Recorded("web-2", 1, BEGAN, Accepted(release="r2", was="r1", plan="2f", by="ana", host="", steps=())),
        Recorded("web-2", 2, BEGAN + 30, Entered("backfilling")),
    ]
    samples = [
        FeedSample(at=BEGAN + at, feed=feed, rows=180.0, lag=seconds, behind=rows)
        for at, seconds, rows in ((10.0, 215.0, 15_100), (20.0, 4.0, 280))
        for feed in ("parse", "")
    ]
    recording = stored_recording("web", EU, events, samples, None)
    player = Playback(recording, "console playback", at=BEGAN + seconds, clock=lambda: 0.0)
    await player.seek(BEGAN + seconds)
    view = player.views["eu"]
    assert (lag(view), behind(view)) == shown
    assert view.status.rollout == "web-2"
    await player.close()
