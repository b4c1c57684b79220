"""A region whose Spark is ended and woken again and again, in a process of its own, since pyspark keeps its gateway there.

`python -m tests.agent.asleep FOLDER CYCLES` prints one JSON line: what each cycle took, and what the process holds after it.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from console.agent import spark_process
from console.agent.service import Service
from console.agent.settings import Settings
from console.model import codec
from console.model.live import Release
from console.model.step import Promote
from console.process import leave
from tests.agent.test_status_without_agent import UnattendedSetup
from tests.faults.rules.tables import column_values
from tests.life.region import SHORT_LIVED
from tests.plans import bare_plan

IDLE_SECONDS = 1.0
WAIT_SECONDS = 400.0


@dataclass(kw_only=True)
class Cycle:
    """wake: seconds from a landing commit to its row two tables further;  late: error of a session of the ended JVM"""

    wake: float
    jvm: int
    gone: bool
    late: str
    descriptors: int
    threads: int
    pss: int


@dataclass(kw_only=True)
class Report:
    """spark_at_start: whether a region without new rows started Spark;  while_ending: what was asked while it ended

    descriptors, threads  once it has ended for the last time
    """

    spark_at_start: bool = True
    rest_pss: int = 0
    while_ending: dict[str, Any] = field(default_factory=dict)
    cycles: list[Cycle] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    lost: bool = False
    descriptors: int = 0
    threads: int = 0


class Region:
    def __init__(self, place: Path) -> None:
        self.setup = UnattendedSetup(place)
        (self.setup.warehouse / "_console").mkdir(exist_ok=True)
        settings = Settings(
            region="eu", master="local[2]", conf={**SHORT_LIVED}, tick_seconds=0.2, follow_idle_seconds=IDLE_SECONDS
        )
        self.service = Service(self.setup.warehouse, settings, -1)
        self.agent, self.report, self.landed = self.service.agent, Report(), list[int]()
        self._ended = threading.Event()

    def run(self, cycles: int) -> Report:
        self.agent.start()
        self.agent.controller("web").resume()  # no rollout is stored there, so it is not found
        ticks = threading.Thread(target=self._tick, name="ticks")
        ticks.start()
        try:
            return self._run(cycles)
        finally:
            self._ended.set()
            ticks.join()
            self.agent.stop()

    def _run(self, cycles: int) -> Report:
        time.sleep(2.0)
        self.report.spark_at_start, self.report.rest_pss = self.agent.spark.started, pss()
        for number in range(cycles):
            self.report.cycles.append(self._cycle())
            if number == 0:
                self._asked_while_ending()
        self.agent.sleeper._thread.join()
        self.report.descriptors, self.report.threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        self.report.rows = column_values(str(self.setup.warehouse / "below"))
        return self.report

    def _tick(self) -> None:
        while not self._ended.wait(0.2):
            self.agent.tick()
            self.report.lost |= self.agent.driver_lost()

    def lands(self) -> None:
        self.landed.append(100 + len(self.landed))
        self.setup.lands(self.landed[-1])

    def _below(self) -> set[int]:
        return set(column_values(str(self.setup.warehouse / "below")))

    def _cycle(self) -> Cycle:
        began = time.monotonic()
        self.lands()
        until(lambda: self.landed[-1] in self._below())
        wake = time.monotonic() - began
        late = self.agent.spark.session().range(3)
        process = self.agent.spark._jvm.proc
        until(lambda: not self.agent.spark.started and self.agent.spark.asleep_since > 0)
        gone = process.poll() is not None
        self.agent.sleeper._thread.join()  # what it gives back is measured
        return Cycle(
            wake=round(wake, 2),
            jvm=process.pid,
            gone=gone,
            late=late_call(late),
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            pss=pss(),
        )

    def _asked_while_ending(self) -> None:
        """A landing commit, a query and an `apply` at the moment at which Spark is being ended."""
        close, told = spark_process.close, self.report.while_ending

        def query() -> None:
            told["query"] = self.service.query("web", "SELECT count(*) AS n FROM copy", ["copy"], {}, 10)["rows"]

        def apply() -> None:
            release = Release(id="r9", pipeline="web", digest="d", tables=(), feeds=())
            plan = bare_plan(steps=(Promote(),), release=release, live="r1", desired="later")
            told["apply"] = self.service.accept(codec.encode(plan), by="ada", host="laptop")["rollout"]

        asking = [threading.Thread(target=each, name="asks") for each in (query, apply)]

        def closing(root: Any, gateway: Any) -> None:
            vars(spark_process)["close"] = close
            self.lands()
            for each in asking:
                each.start()
            time.sleep(0.5)
            told["answered_early"] = "query" in told
            close(root, gateway)

        vars(spark_process)["close"] = closing
        self.lands()
        for each in asking:
            until(lambda each=each: each.ident is not None and not each.is_alive())
        until(lambda: self.landed[-1] in self._below())
        until(lambda: self.service.state("web")["status"].state == "awaiting-confirmation")
        time.sleep(2 * IDLE_SECONDS)
        told["kept_at_gate"] = self.agent.spark.started
        self.service.control("web", "cancel", by="ada", host="laptop")
        until(lambda: not self.agent.spark.started)


def late_call(rows: Any) -> str:
    """The error of a job over rows of an ended JVM."""
    try:
        rows.count()
    except Exception as error:
        return type(error).__name__
    return ""


def until(test: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not test():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)


def pss(process: int | str = "self") -> int:
    """Bytes of a process alone, shared pages divided among their users."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    print(json.dumps(asdict(Region(Path(sys.argv[1])).run(int(sys.argv[2])))))
    leave(0)  # as an agent ends
