"""The size of the Spark behind a Spark Connect server, whose executors its clients are not known of."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from console.agent.cluster import size
from console.model.spark_master import configured_slots, grows

MOST = 4096  # slots that are seen
# settings of the server's own by which more executors may come than there are
_GROWTH = (
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
    "spark.executor.cores",
    "spark.cores.max",
    "spark.task.cpus",
)


def slots(session: Any) -> int:
    """Tasks at once: those of the executors that the server has now, or where more may come by themselves, of all that may.

    Spark cuts a range into as many partitions as it has slots, which a client can count. One short job.

    raises  whatever Spark raises
    """
    from pyspark.sql.functions import spark_partition_id

    now = int(session.range(MOST).select(spark_partition_id().alias("part")).distinct().count())
    conf = _growth(session)
    return max(now, configured_slots(conf) if grows(conf) else 0) or size.UNKNOWN


def build_settings(slots: int, conf: Mapping[str, str]) -> dict[str, str]:
    """Of a session that reads tables as a whole: what the region's file names counts, and else the size at hand."""
    return size.session_settings(slots, conf) | size.build_settings(slots)


def _growth(session: Any) -> dict[str, str]:
    from pyspark.errors import PySparkException

    known: dict[str, str] = {}
    for name in _GROWTH:
        with suppress(PySparkException):  # managed ones hide some of their settings
            known[name] = str(session.conf.get(name, "") or "")
    return known
