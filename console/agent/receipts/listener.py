"""The console waiting for an audit: receives progress, and can cancel it, even within a check."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle
from console.model.receipt import AuditProgress

JOB_SECONDS = 2.0  # between two reports of a running Spark job
CANCEL_SECONDS = 0.2  # between two cancellations: a cancelled check may still start jobs


class AuditStopped(Exception):
    """The audit was cancelled by its console. Not an error."""


class AuditListener:
    """One request for an audit. tell: called with each progress report, from several threads; must not block"""

    def __init__(self, tell: Callable[[AuditProgress], None] = lambda progress: None) -> None:
        self._tell = tell
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Cancel the audit; returns at once."""
        self._stopped.set()

    def check_stopped(self) -> None:
        """raises  AuditStopped once the audit is cancelled"""
        if self._stopped.is_set():
            raise AuditStopped

    @contextmanager
    def watching(self, spark: SparkHandle, session: Any, progress: AuditProgress) -> Iterator[None]:
        """Context of one check: reports it and its Spark jobs, and cancels these once the audit is cancelled.

        raises  AuditStopped, regardless of the outcome of the check whose jobs were cancelled
        """
        self.check_stopped()
        self._tell(progress)
        finished = threading.Event()
        with spark.job(session, f"verify {progress.step} {progress.what} {uuid4().hex[:8]}") as group:
            ticker = threading.Thread(target=self._tick, args=(group, progress, finished), name="audit", daemon=True)
            ticker.start()
            try:
                yield
            except Exception:
                self.check_stopped()
                raise
            finally:
                finished.set()
                ticker.join()
        self.check_stopped()

    def _tick(self, group: RunningJob, progress: AuditProgress, finished: threading.Event) -> None:
        looked = time.monotonic()
        while not finished.wait(CANCEL_SECONDS):
            with suppress(Exception):  # the JVM is gone; the check itself reports it
                if self._stopped.is_set():
                    group.cancel()
                elif time.monotonic() - looked >= JOB_SECONDS:
                    looked = time.monotonic()
                    self._tell(replace(progress, found=(), job=group.job()))
