"""The size of a cluster as its Spark sees it, and the settings that depend on it."""

from collections.abc import Iterator, Mapping
from typing import Any

from console.model.spark_master import configured_slots, grows
from console.record import dataclass

UNKNOWN = 2  # slots of a cluster that has no executor yet, and whose settings name none
_STATES = 50  # partitions of a Delta table's state, at most: Delta's own default
# by the size of a cluster; where its operator names one, theirs counts
_SHUFFLE = "spark.sql.shuffle.partitions"
_SNAPSHOT = "spark.databricks.delta.snapshotPartitions"
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_TASKS = "spark.sql.files.maxPartitionNum"


@dataclass(frozen=True, slots=True)
class Executor:
    """A running executor: the host on which it is, and the tasks that it takes at once."""

    id: str
    host: str
    tasks: int


class RunningExecutors:
    """The running executors of one Spark, asked for again only when others have come or gone: each costs calls into the JVM,
    and every session and job needs them."""

    def __init__(self) -> None:
        self._ids, self._known = "", tuple[Executor, ...]()

    def of(self, context: Any) -> tuple[Executor, ...]:
        """Those of a SparkContext by what Spark keeps for its UI; the same tuple as long as they are the same."""
        scheduled = str(context._jsc.sc().getExecutorIds().mkString(","))
        if not scheduled or scheduled != self._ids:
            listed = tuple(_running(context._jsc.sc().statusStore().executorList(True)))
            # the UI's list follows the scheduler's with a delay: until both are the same it is asked for again
            settled = {each.id for each in listed} == {*scheduled.split(",")}
            self._ids, self._known = scheduled if settled else "", listed
        return self._known


def _running(listed: Any) -> Iterator[Executor]:
    for at in range(listed.size()):
        each = listed.apply(at)
        host = each.hostPort().rpartition(":")[0]  # "" until its store of blocks is there: before that it takes no task
        if each.id() != "driver" and each.isActive() and host:
            yield Executor(each.id(), host, int(each.maxTasks()))


def slots(running: tuple[Executor, ...], conf: Mapping[str, str]) -> int:
    """Tasks at once: of the running executors, or where more may come by themselves, of all that may."""
    now = sum(each.tasks for each in running)
    asked = configured_slots(conf)
    return (max(now, asked) if grows(conf) else now or asked) or UNKNOWN


def build_tasks(slots: int) -> int:
    """Tasks of a build at once: a slot stays free for live (rule 10)."""
    return max(1, slots - 1)


def session_settings(slots: int, conf: Mapping[str, str]) -> dict[str, str]:
    """What every session of a cluster of this size is given, but for what its operator has set: checks and queries leave a
    slot to live as well."""
    tasks = build_tasks(slots)
    chosen = {_TASKS: tasks, _SHUFFLE: tasks, _SNAPSHOT: min(tasks, _STATES), _LISTING: tasks}
    return {name: str(number) for name, number in chosen.items() if name not in conf}


def build_settings(slots: int) -> dict[str, str]:
    """Of a session that reads tables as a whole."""
    return {_TASKS: str(build_tasks(slots))}
