"""History of which one task of a batch is long and the others short, and a look at where they run."""

import json
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import write_deltalake

from tests.cluster.standalone import HOST, free_port
from tests.life.region import DAYS, FIRST_DAY, LANDING

T = TypeVar("T")
LOOK_SECONDS = 0.1
SOON_SECONDS = 240.0
ROWS_READ = 100  # of history: a task that reads a log's entries reads fewer


def heavy_file(landing: Path, rows: int, *, name: str = "h", days: int = DAYS) -> None:
    """One commit of one file of one row group: a single task reads all of it, however it is split.

    days  over which its rows are spread; those of one are one batch
    """
    ids = [f"{name}{n}" for n in range(rows)]
    day = 86_400_000_000
    first = int(FIRST_DAY.timestamp() * 1_000_000)
    payloads = [
        json.dumps({"ip": f"192.0.2.{n % 40}", "status": 200 + n % 3, "bytes": n, "ua": "curl/8", "ms": 1.5})
        for n in range(rows)
    ]
    times = pa.array([first + n % days * day for n in range(rows)], pa.timestamp("us", "UTC"))
    table = pa.table([pa.array(ids), times, pa.array(payloads)], schema=LANDING)
    write_deltalake(str(landing), table, mode="append")


@dataclass(frozen=True, slots=True)
class Running:
    """Tasks of one stage of a batch: executors on which some run, and those on which some have ended and had read rows of history."""

    active: frozenset[str]
    read: frozenset[str]


class SparkUi:
    """The status of the agent's Spark by its own REST interface."""

    def __init__(self) -> None:
        self._port = free_port()

    @property
    def conf(self) -> dict[str, str]:
        return {"spark.ui.enabled": "true", "spark.ui.port": str(self._port)}

    def _get(self, what: str) -> Any:
        with urllib.request.urlopen(f"http://{HOST}:{self._port}/api/v1/applications{what}", timeout=10) as answer:
            return json.load(answer)

    def stages_of_a_batch(self) -> list[Running]:
        """The running stages of jobs whose group is a batch."""
        (application,) = self._get("")
        jobs = self._get(f"/{application['id']}/jobs?status=running")
        ids = {stage for job in jobs if "#" in job.get("jobGroup", "") for stage in job["stageIds"]}
        stages = self._get(f"/{application['id']}/stages?status=active")
        return [self._running(application["id"], stage) for stage in stages if stage["stageId"] in ids]

    def _running(self, application: str, stage: Any) -> Running:
        tasks = self._get(f"/{application}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=100")
        active = frozenset(task["executorId"] for task in tasks if task["status"] == "RUNNING")
        ended = [task for task in tasks if task["status"] == "SUCCESS"]
        read = frozenset(
            task["executorId"] for task in ended if task["taskMetrics"]["inputMetrics"]["recordsRead"] >= ROWS_READ
        )
        return Running(active, read)

    def idle_but_needed(self) -> str | None:
        """An executor whose tasks of a batch's stage have all ended, while another's go on: its map output is still needed."""
        for stage in self.stages_of_a_batch():
            if stage.active and (waiting := sorted(stage.read - stage.active)):
                return waiting[0]
        return None


def soon(look: Callable[[], T | None], what: str) -> T:
    """The first answer that is one."""
    until = time.monotonic() + SOON_SECONDS
    while time.monotonic() < until:
        with suppress(OSError, ValueError):
            if (found := look()) is not None:
                return found
        time.sleep(LOOK_SECONDS)
    raise AssertionError(f"{what} was not seen within {SOON_SECONDS:g} s")
