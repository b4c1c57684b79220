"""The jobs of one tag of a Spark Connect session: their progress, as the server reports it, and their cancellation."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from console.model.measured import SparkJob


class TaggedJobs:
    """The jobs of one tag, in a session that nobody else uses: a server reports the progress of a whole session. A `spark_jobs.RunningJob`.

    It reports every two seconds, and neither how long single tasks take nor what they spill.
    """

    def __init__(self, session: Any, tag: str) -> None:
        self._session = session
        self._tag = tag
        self._operations: dict[str, int] = {}  # id → number, from 1
        self._stages: dict[int, Any] = {}
        self._running: tuple[int, ...] = ()  # stages of the running operation

    def hear(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """One report of the server's. Named as PySpark's client names them."""
        heard = tuple(stages or ())
        self._operations.setdefault(operation_id or "", len(self._operations) + 1)
        self._stages = {**self._stages, **{stage.stage_id: stage for stage in heard}}
        self._running = () if done else tuple(stage.stage_id for stage in heard)

    def fraction(self) -> float:
        """Finished tasks ÷ known tasks of all stages so far; 0 before the first report."""
        stages = tuple(self._stages.values())
        total = sum(stage.num_tasks for stage in stages)
        return sum(stage.num_completed_tasks for stage in stages) / total if total else 0.0

    def job(self) -> SparkJob | None:
        """The running operation, at its first unfinished stage; None between two of them. job: its number of this tag's"""
        running, known = self._running, self._stages
        for at, stage in enumerate((known[id] for id in sorted(running)), 1):
            if not stage.done and stage.num_completed_tasks < stage.num_tasks:
                return SparkJob(
                    job=len(self._operations),
                    stage=at,
                    stages=len(running),
                    done=stage.num_completed_tasks,
                    tasks=stage.num_tasks,
                )
        return None

    def cancel(self) -> None:
        """Cancel its operations, from any thread. A server that does not answer is given up by whoever waits for them."""
        with suppress(Exception):
            self._session.interruptTag(self._tag)


@contextmanager
def tagged(session: Any, name: str) -> Iterator[TaggedJobs]:
    """Context in which what this thread asks of a session has a tag."""
    tag = name.replace(",", ";")  # which no tag may hold
    jobs = TaggedJobs(session, tag)
    session.addTag(tag)
    session.registerProgressHandler(jobs.hear)
    try:
        yield jobs
    finally:
        session.removeProgressHandler(jobs.hear)
        session.removeTag(tag)
