"""An audit is followed check by check, and cancelled within a check."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.agent.receipts import listener as listeners
from console.agent.receipts.listener import AuditListener, AuditStopped
from console.agent.spark_session import SparkHandle
from console.model.measured import SparkJob
from console.model.receipt import AuditProgress

CHECK = AuditProgress(number=2, of=5, table="requests", step="backfill/requests/parse", what="target")
JOB = SparkJob(job=1, stage=1, stages=2, done=3, tasks=8)


class Groups:
    """Spark's job groups, counting how often one is cancelled."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.cancelled = 0

    @contextmanager
    def job(self, session: Any, name: str) -> Iterator[Any]:
        self.names.append(name)
        yield SimpleNamespace(cancel=self.cancel, job=lambda: JOB)

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> Groups:
    monkeypatch.setattr(listeners, "CANCEL_SECONDS", 0.002)
    monkeypatch.setattr(listeners, "JOB_SECONDS", 0.01)
    return Groups()


def until(test: Any) -> None:
    end = time.monotonic() + 30
    while not test():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_check_is_named_before_it_runs_and_its_job_while_it_runs(groups: Groups) -> None:
    heard: list[AuditProgress] = []
    with AuditListener(heard.append).watching(cast(SparkHandle, groups), None, CHECK):
        assert heard[0] == CHECK  # its job may be told already, a hundredth of a second later
        until(lambda: len(heard) > 1)
    assert heard[1].job == JOB
    assert (heard[1].number, heard[1].of) == (2, 5)
    assert groups.cancelled == 0


@pytest.mark.parametrize("failure", [None, RuntimeError("job was cancelled")])
def test_what_a_check_finds_after_it_was_cancelled_counts_for_nothing(
    failure: Exception | None, groups: Groups
) -> None:
    listener = AuditListener()

    def cancelled() -> None:
        with listener.watching(cast(SparkHandle, groups), None, CHECK):
            listener.stop()
            until(lambda: groups.cancelled > 1)
            if failure:
                raise failure

    with pytest.raises(AuditStopped):
        cancelled()


def test_no_check_begins_after_it_was_cancelled_and_no_two_audits_share_a_group(groups: Groups) -> None:
    listener = AuditListener()
    for _ in range(2):
        with listener.watching(cast(SparkHandle, groups), None, CHECK):
            pass
    assert len(set(groups.names)) == 2
    listener.stop()
    with pytest.raises(AuditStopped), listener.watching(cast(SparkHandle, groups), None, CHECK):
        raise AssertionError("it began")
