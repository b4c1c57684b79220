"""Files and bytes read by a finished query, from Spark's own metrics."""

from collections.abc import Iterator
from typing import Any

_PLANS = "org.apache.spark.sql.execution.adaptive"
LISTENER_MILLISECONDS = 5_000  # the delay with which a job's last metrics may arrive


def read_cost(session: Any, frame: Any, group: str) -> tuple[int, int] | None:
    """Files that the scans of a finished query opened, and bytes that the tasks of its jobs read; None if Spark, which keeps
    its newest stages alone, has already forgotten one, and through Spark Connect, which tells neither.

    frame  the DataFrame that was collected: its plan holds the metrics
    group  the job group of that run alone
    """
    from pyspark.sql import SparkSession

    if not isinstance(session, SparkSession):  # that of Spark Connect is another class
        return None
    context = session.sparkContext
    read = _input_bytes(context, group)
    if read is None:
        return None
    return sum(_metric(leaf, "numFiles") for leaf in _leaves(context, frame._jdf.queryExecution().executedPlan())), read


def _leaves(context: Any, plan: Any) -> Iterator[Any]:
    """The scans of an executed physical plan, those in subqueries included, each once."""
    from py4j.java_gateway import is_instance_of

    if is_instance_of(context._gateway, plan, f"{_PLANS}.AdaptiveSparkPlanExec"):
        yield from _leaves(context, plan.executedPlan())
    elif is_instance_of(context._gateway, plan, f"{_PLANS}.QueryStageExec"):
        yield from _leaves(context, plan.plan())
    else:
        children, inner = plan.children(), plan.subqueries()
        for at in range(children.size()):
            yield from _leaves(context, children.apply(at))
        for at in range(inner.size()):
            yield from _leaves(context, inner.apply(at))
        if not children.size():
            yield plan


def _metric(plan: Any, name: str) -> int:
    metric = plan.metrics().get(name)
    return int(metric.get().value()) if metric.isDefined() else 0


def _input_bytes(context: Any, group: str) -> int | None:
    """The sum of Spark's counts for each stage of the group's jobs; None if one is unknown."""
    spark = context._jsc.sc()
    spark.listenerBus().waitUntilEmpty(LISTENER_MILLISECONDS)
    tracker, store = context.statusTracker(), spark.statusStore()
    jobs = (tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    if any(tracker.getStageInfo(stage) is None for stage in stages):
        return None
    return sum(int(store.lastStageAttempt(stage).inputBytes()) for stage in stages)
