"""The agent's end of its second Spark: starts the process at a build's first large batch, and ends it with the build.

What that process writes is files; the agent commits them (docs/decisions/0028). So it can be killed at any time, and that is
how a batch of it is cancelled.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, assert_never

from console.agent.agent_log import write_log
from console.agent.errors import SecondSparkLost
from console.agent.failure import ClassifiedFailure
from console.agent.second_spark.messages import (
    Answer,
    BatchFailed,
    BatchOrder,
    BatchUnderWay,
    BatchWritten,
    Start,
    answer_in,
    line,
)
from console.agent.settings import Settings
from console.agent.spark_jobs import RunningJob
from console.agent.spark_process import exit_reason
from console.errors import DataError
from console.model.measured import SparkJob

IDLE_SECONDS = 300.0  # without a batch, as outside of a throttle's hours, after which it is ended
EXIT_SECONDS = 20.0  # time for its process and its JVM to exit at the end of their input, after which they are killed
KILLED_SECONDS = 5.0  # time for killed processes to be gone
LOOK_SECONDS = 0.05


class SecondSpark:
    """One for a build.

    settings   of the second Spark (`Settings.second_spark`)
    lock_fd    the descriptor of the region's lock, which its processes hold as well; -1 for none
    warehouse  path or URI
    """

    def __init__(self, settings: Settings, lock_fd: int, warehouse: str) -> None:
        self._start = Start(settings, lock_fd)
        self._warehouse = warehouse
        self._process: subprocess.Popen[str] | None = None
        self._guard = threading.RLock()
        self._idle: threading.Timer | None = None

    @property
    def pid(self) -> int:
        """Of its process, which is also the number of its group; 0 where none runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    def write(self, order: BatchOrder, watch: Callable[[RunningJob], None]) -> BatchWritten:
        """Have the files of one batch written, by a process that is started if none runs.

        watch    called before it starts, with what shows its progress and cancels it
        raises   SecondSparkLost if it ended; ClassifiedFailure if the batch failed. Either way nothing of it counts, and the
                 next batch has another process
        """
        job = _BatchJob(self._interrupt)
        watch(job)
        try:
            process = self._started()
            _send(process, line(order))
            written = _answered(process, job)
        except BaseException:
            self._interrupt()
            self.end()
            raise
        self._end_later()
        return written

    def end(self) -> None:
        """End it, if one runs, and wait for the end of its processes. Not while a batch is written."""
        with self._guard:
            self._stop_timer()
            process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            _input(process).close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(EXIT_SECONDS)
        if not _is_gone(process.pid, EXIT_SECONDS):
            _kill(process.pid)
            process.wait()
            _is_gone(process.pid, KILLED_SECONDS)
        _output(process).close()

    def _started(self) -> "subprocess.Popen[str]":
        with self._guard:
            self._stop_timer()
            if self._process is not None and self._process.poll() is None:
                return self._process
        self.end()  # of one that has exited meanwhile
        fd = self._start.lock_fd
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "console.agent", "backfill", "--warehouse", self._warehouse],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # a group of its own, which its JVM belongs to
            pass_fds=(fd,) if fd >= 0 else (),
        )
        write_log("spark", "info", f"the second Spark starts: {self._start.settings.master}, process {self.pid}")
        _send(self._process, line(self._start))
        return self._process

    def _interrupt(self) -> None:
        """Kill its processes. Whoever waits for an answer notices, and ends it."""
        if pid := self.pid:
            _kill(pid)

    def _end_later(self) -> None:
        with self._guard:
            timer = threading.Timer(IDLE_SECONDS, lambda: self._end_idle(timer))
            timer.daemon = True
            timer.start()
            self._idle = timer

    def _end_idle(self, timer: threading.Timer) -> None:
        with self._guard:
            if self._idle is not timer:  # a batch has begun meanwhile
                return
            self.end()

    def _stop_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


class _BatchJob:
    """A batch that another process writes; implements `spark_jobs.RunningJob`."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self.last = BatchUnderWay(0.0, None)
        self._interrupt = interrupt

    def fraction(self) -> float:
        return self.last.fraction

    def job(self) -> SparkJob | None:
        return self.last.job

    def cancel(self) -> None:
        self._interrupt()


def _answered(process: "subprocess.Popen[str]", job: _BatchJob) -> BatchWritten:
    while text := _output(process).readline():
        match _answer(text):
            case BatchUnderWay() as now:
                job.last = now
            case BatchWritten() as written:
                return written
            case BatchFailed() as failed:
                raise ClassifiedFailure(
                    failed.why, hint=failed.hint, code=failed.code, what=failed.what, unexpected=failed.unexpected
                )
            case other:
                assert_never(other)
    raise _lost(process)


def _answer(text: str) -> Answer:
    try:
        return answer_in(text)
    except DataError:  # cut off by its death
        raise SecondSparkLost(f"the second Spark: an answer that is none: {text[:60]!r}") from None


def _send(process: "subprocess.Popen[str]", text: str) -> None:
    try:
        _input(process).write(text)
        _input(process).flush()
    except OSError:
        raise _lost(process) from None


def _lost(process: "subprocess.Popen[str]") -> SecondSparkLost:
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILLED_SECONDS)
    code = process.poll()
    why = "it gives no answer any more" if code is None else exit_reason(code)
    return SecondSparkLost(f"the second Spark was lost: {why}")


def _input(process: "subprocess.Popen[str]") -> IO[str]:
    assert process.stdin
    return process.stdin


def _output(process: "subprocess.Popen[str]") -> IO[str]:
    assert process.stdout
    return process.stdout


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _is_gone(group: int, seconds: float) -> bool:
    """Whether all processes of a group have ended within that time."""
    until = time.monotonic() + seconds
    while _is_running(group):
        if time.monotonic() >= until:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _is_running(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    listed = list(Path("/proc").glob("[0-9]*/stat"))
    return not listed or any(_belongs(stat, group) for stat in listed)


def _belongs(stat: Path, group: int) -> bool:
    """Whether a process of that group runs: one that has ended counts until its parent looks, which in a container may be never."""
    try:
        state, _, its_group, *_ = stat.read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return False
    return int(its_group) == group and state not in ("Z", "X")
