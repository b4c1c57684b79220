"""Figures that an agent measures: samples of feeds and lag, and the Spark job of the running batch. Never stored as events."""

from console.record import dataclass

SAMPLE_SECONDS = 10.0
KEPT_HOURS = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSample:
    """One measurement of a feed, or of a whole pipeline, over the ten seconds before `at`.

    at        seconds since 1970, UTC
    feed      the materialization, `parse`; `parse → requests/3fa2c1-2` for a release that is not live, if both have one
              of this name; "" for the pipeline: rows summed, the largest lag
    rows      live rows per second
    lag       seconds by which the last moved row is behind its source
    behind    rows waiting in the source
    backfill  rows of history per second; only for the pipeline
    """

    at: float
    feed: str
    rows: float
    lag: float
    behind: int
    backfill: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePage:
    """Samples, oldest first. before: pass it to get the previous page; 0 if there is none"""

    samples: tuple[FeedSample, ...]
    before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJob:
    """The Spark job of the running batch.

    job              Spark's number
    stage, stages    the running stage, from 1, and the number of stages
    done, tasks      finished tasks of that stage, and all
    longest          seconds of its longest task, finished or running;  median  of its finished ones; 0 if there is none
    spilled          bytes written to disk for lack of memory
    """

    job: int
    stage: int
    stages: int
    done: int
    tasks: int
    longest: float = 0.0
    median: float = 0.0
    spilled: int = 0

    @property
    def skewed(self) -> bool:
        """Whether one task takes far longer than the others; False until half of them have finished."""
        return 2 * self.done > self.tasks and self.longest > 5.0 and self.longest > 4 * self.median
