"""The cancellation of a job group: by a timer's thread it may come when Spark has already stopped."""

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from console.agent.spark_jobs import JobGroup


class _Java:
    """A context's Java side; answer: of `isStopped`"""

    def __init__(self, answer: bool | Exception, error: Exception) -> None:
        self.answer, self.error = answer, error

    def sc(self) -> "_Java":
        return self

    def isStopped(self) -> bool:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancelJobGroup(self, group: str) -> None:
        raise self.error


def _group(java: _Java | None) -> JobGroup:
    context = SparkContext.__new__(SparkContext)  # pyspark's own code, without a JVM
    context._jsc = java
    return JobGroup(context, "way back r3 of_day")


@pytest.mark.parametrize(
    "java",
    [
        None,
        _Java(True, Py4JError("IllegalStateException: Cannot call methods on a stopped SparkContext")),
        _Java(Py4JNetworkError("answer from Java side is empty"), Py4JNetworkError("answer from Java side is empty")),
        _Java(ConnectionRefusedError(111, "Connection refused"), ConnectionRefusedError(111, "Connection refused")),
    ],
    ids=["behind its stop", "stopped", "process lost", "port closed"],
)
def test_where_spark_has_stopped_no_job_is_left_to_cancel(java: _Java | None) -> None:
    _group(java).cancel()


def test_a_cancellation_that_a_running_spark_refuses_is_an_error() -> None:
    with pytest.raises(Py4JError, match="unknown group"):
        _group(_Java(False, Py4JError("unknown group"))).cancel()
