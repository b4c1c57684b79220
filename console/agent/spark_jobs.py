"""The Spark jobs of one job group: their progress, as Spark reports it, and their cancellation."""

from typing import Any, Protocol

from console.model.measured import SparkJob


class RunningJob(Protocol):
    """What is shown of a work of Spark's, and its cancellation: of this process's Spark or of another's."""

    def fraction(self) -> float: ...

    def job(self) -> SparkJob | None: ...

    def cancel(self) -> None: ...


class JobGroup:
    """The jobs of one group."""

    def __init__(self, context: Any, group: str) -> None:
        self._context = context
        self._group = group

    def fraction(self) -> float:
        """Finished tasks ÷ known tasks of all stages so far; 0 before the first."""
        tracker = self._context.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                tasks = tracker.getStageInfo(stage)
                if tasks:
                    done, total = done + tasks.numCompletedTasks, total + tasks.numTasks
        return done / total if total else 0.0

    def job(self) -> SparkJob | None:
        """The running job of the group, at its current stage; None between two jobs. Some twenty short calls into the JVM."""
        tracker = self._context.statusTracker()
        for number in sorted(tracker.getJobIdsForGroup(self._group), reverse=True):
            info = tracker.getJobInfo(number)
            if info is None or info.status != "RUNNING":
                continue
            ids = sorted(info.stageIds)
            stages = [(at, stage) for at, id in enumerate(ids, 1) if (stage := tracker.getStageInfo(id))]
            unfinished = [entry for entry in stages if entry[1].numCompletedTasks < entry[1].numTasks]
            running = [entry for entry in unfinished if entry[1].numActiveTasks]
            if not (running or unfinished):
                continue
            at, stage = (running or unfinished)[0]
            longest, median, spilled = self._of_tasks(stage.stageId, stage.currentAttemptId)
            return SparkJob(
                job=number,
                stage=at,
                stages=len(ids),
                done=stage.numCompletedTasks,
                tasks=stage.numTasks,
                longest=longest,
                median=median,
                spilled=spilled,
            )
        return None

    def _of_tasks(self, stage: int, attempt: int) -> tuple[float, float, int]:
        """Longest and median seconds of a stage's tasks, and bytes spilled to disk. From what Spark keeps for its UI."""
        gateway, store = self._context._gateway, self._context._jsc.sc().statusStore()
        quantiles = gateway.new_array(gateway.jvm.double, 2)
        quantiles[0], quantiles[1] = 0.5, 1.0
        summary = store.taskSummary(stage, attempt, quantiles)
        median = longest = 0.0
        if summary.isDefined():
            durations = summary.get().duration()
            median, longest = durations.apply(0) / 1000, durations.apply(1) / 1000
        running = gateway.jvm.java.util.ArrayList()
        running.add(gateway.jvm.org.apache.spark.status.api.v1.TaskStatus.RUNNING)
        oldest = store.taskList(stage, attempt, 0, 1, gateway.jvm.scala.Option.apply("lt"), True, running)
        if oldest.size():
            now = gateway.jvm.java.lang.System.currentTimeMillis()
            longest = max(longest, (now - oldest.apply(0).launchTime().getTime()) / 1000)
        return round(longest, 3), round(median, 3), int(store.lastStageAttempt(stage).diskBytesSpilled())

    def cancel(self) -> None:
        """Cancel its jobs, from any thread. Once Spark has stopped, or its process is gone, none of them is left."""
        try:
            self._context.cancelJobGroup(self._group)
        except Exception:
            if not self._stopped():
                raise

    def _stopped(self) -> bool:
        from py4j.protocol import Py4JError

        java = self._context._jsc  # None behind the context's stop
        try:
            return java is None or bool(java.sc().isStopped())
        except (Py4JError, OSError):
            return True
