"""Recorded rollouts, and the forecast as of a moment in one of them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from console.model.codec import decode
from console.model.event import Accepted, Entered, Recorded
from console.model.plan import Plan
from console.model.region import Region, Spark
from console.model.status import Status, replay
from console.record import dataclass
from console.runner.outlook.forecast import Forecast, forecast
from tests.forecast.stories import Story

FOLDER = Path(__file__).parent / "recordings"
GATE = Entered("awaiting-confirmation")
REGION = Region(name="eu", warehouse="warehouse", spark=Spark(master="local[2]"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRollout:
    """One rollout, from its acceptance to its gate (`tests/forecast/record`). load: of the machine, before it and at its end"""

    story: Story
    load: tuple[float, ...]
    plan: Plan
    events: tuple[Recorded, ...]

    @property
    def began(self) -> float:
        assert isinstance(self.events[0].event, Accepted)
        return self.events[0].at

    @property
    def ended(self) -> float:
        assert self.events[-1].event == GATE
        return self.events[-1].at

    def status(self, at: float) -> Status:
        """The status at that moment, as a console that watches from the beginning knows it."""
        return replay(recorded for recorded in self.events if recorded.at <= at)

    def forecast(self, at: float) -> Forecast | None:
        """The forecast of that moment: nothing that came later is known."""
        stored = [recorded for recorded in self.events if recorded.seq and recorded.at <= at]
        return forecast(self.status(at), stored, region=REGION, plan=self.plan, now=at)


def recorded_rollouts() -> Iterator[RecordedRollout]:
    for file in sorted(FOLDER.glob("*.jsonl.gz")):
        head, *lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        first = json.loads(head)
        events = tuple(decode(Recorded, json.loads(line)) for line in lines)
        load = tuple(first.get("machine", {}).get("load", ()))
        yield RecordedRollout(story=Story(first["story"]), load=load, plan=decode(Plan, first["plan"]), events=events)
