"""Ends the region's Spark while nothing needs it, so that an idle region costs no JVM; whoever needs it starts it again."""

import ctypes
import gc
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from console.agent.agent_log import describe, write_log
from console.agent.clock import span
from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.rollout.ownership import in_progress
from console.agent.spark_session import SparkHandle
from console.model.region import Follow

JOIN_SECONDS = 20.0


@dataclass(slots=True, kw_only=True)
class SparkSleeper:
    """One for a region.

    busy  other work of the agent that may ask Spark: a maintenance, rounds of checks, a proof of the way back
    """

    spark: SparkHandle
    follower: FeedFollower
    follow: Follow
    controllers: Callable[[], Iterable[PipelineController]]
    busy: tuple[Callable[[], bool], ...] = ()
    _needed: float = 0.0  # monotonic: when something needed it last
    _thread: threading.Thread | None = None
    _ending: threading.Event = field(default_factory=threading.Event)

    def tick(self) -> None:
        """Called at each tick: end Spark, in a thread of its own, if nothing has needed it for `follow.idle`."""
        idle = self.follow.idle_seconds
        if idle is None or self.follow.keeps_spark or not self.spark.started or self._ending.is_set():
            return
        if self._thread is not None and self._thread.is_alive():
            return
        if self._is_needed():
            self._needed = time.monotonic()
            return
        fed = (controller.sandboxes.feeds.last_used for controller in self.controllers())
        last = max(self._needed, self.spark.last_used, self.follower.last_used, *fed)
        if time.monotonic() - last >= idle:
            self._thread = threading.Thread(target=self._end, args=(idle,), name="sleep", daemon=True)
            self._thread.start()

    @property
    def resting(self) -> bool:
        """Whether the region has no Spark, and nothing of its own needs one."""
        return bool(self.spark.asleep_since) and not self._is_needed()

    @property
    def may_restart(self) -> bool:
        """Whether the process can be replaced by a fresh one: Spark was ended, and nothing has begun since.

        pyspark cannot be unloaded, and each JVM that was started has left some memory behind.
        """
        ending = self._thread is not None and self._thread.is_alive()
        return self.spark.rests and not ending and not self._is_needed()

    def _is_needed(self) -> bool:
        return any(busy() for busy in self.busy) or any(map(_needs_spark, self.controllers()))

    def stop(self) -> None:
        """Wait for a JVM that is being ended, because the agent ends."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)

    def _end(self, idle: float) -> None:
        began = time.monotonic()
        try:
            fed = (controller.sandboxes.feeds for controller in self.controllers())
            if not (self.follower.let_go(idle) and all(each.let_go(idle) for each in fed) and self.spark.sleep(idle)):
                return
        except Exception as error:  # tried again a second later
            write_log("agent", "warning", f"Spark does not go to sleep: {describe(error)}")
            return
        took = time.monotonic() - began
        write_log("agent", "info", f"Spark sleeps: nothing has needed it for {span(idle)}; it ended in {took:.1f} s")
        _return_memory()


def _needs_spark(controller: PipelineController) -> bool:
    """Whether a rollout is in progress, a promoted release is watched, or a sandbox is being built."""
    status = controller.recorder.status
    if in_progress(status) or controller.execution.running or status.watch is not None:
        return True
    return any(sandbox.state == "building" for sandbox in controller.sandboxes.listed())


def _return_memory() -> None:
    """Give freed memory back to the system: a process that a console keeps from being replaced is smaller by tens of megabytes."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
