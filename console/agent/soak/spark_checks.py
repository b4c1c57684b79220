"""A check that asks Spark, in its turn: it is run again after a multiple of what it last took."""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from console.agent.failure import cause
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.model.event import Checked
from console.text import redacted, safe_text

Pins = Mapping[str, int]
Checks = Callable[[RolloutContext, Pins], Iterator[Checked]]


@dataclass(frozen=True, slots=True)
class CheckPace:
    """How often checks are run.

    every  seconds between two runs, at least;  share: … and so many times what the last one took
    most   seconds after which a run is cancelled;  inconclusive: whether its result is, then
    """

    every: float
    share: float
    most: float
    inconclusive: bool = True


@dataclass(slots=True, kw_only=True)
class SparkCheck:
    """One kind of check.

    place  and name: table and check of the result of a run that was not completed
    due    monotonic
    """

    place: str
    name: str
    run: Checks
    pace: CheckPace
    due: float = 0.0

    def results(self, context: RolloutContext, pins: Pins) -> Generator[Checked]:
        """Its results if it is due; inconclusive if it cannot be run.

        raises  RolloutStopped; any error if Spark is lost
        """
        began = time.monotonic()
        if began < self.due:
            return
        late = threading.Event()
        try:
            with _limited(context, late, self.pace.most):
                yield from self.run(context, pins)
            yield Checked(table=self.place, check=self.name, ok=True, detail="it was completed")
        except RolloutStopped:
            raise
        except Exception as error:
            context.check_halt()
            if context.spark.lost:
                raise  # it says nothing about a table
            if late.is_set() and not self.pace.inconclusive:
                return
            why = f"no result within {self.pace.most:.0f} s" if late.is_set() else cause(error)
            yield Checked(table=self.place, check=self.name, ok=None, detail=safe_text(redacted(why), 300))
        finally:
            ended = time.monotonic()
            self.due = ended + max(self.pace.every, self.pace.share * (ended - began))


@contextmanager
def _limited(context: RolloutContext, late: threading.Event, seconds: float) -> Iterator[None]:
    """Context of a run, whose Spark job is cancelled once it takes too long."""

    def cancel() -> None:
        late.set()
        if (job := context.job) is not None:
            job.cancel()

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
