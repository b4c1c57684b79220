"""History of which one task of a batch is long and the others short, and a look at where they run."""

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
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


def heavy_file(landing: Path, rows: int, *, name: str = "h") -> None:
    """One commit of one file of one row group: a single task reads all of it, however it is split."""
    ids = [f"{name}{n}" for n in range(rows)]
    day = 86_400_000_000
    first = int(FIRST_DAY.timestamp() * 1_000_000)
    payloads = [
        json.dumps({"ip": f"192.0.2.{n % 40}", "status": 200 + n % 3, "bytes": n, "ua": "curl/8", "ms": 1.5})
        for n in range(rows)
    ]
    times = pa.array([first + n % DAYS * day for n in range(rows)], pa.timestamp("us", "UTC"))
    table = pa.table([pa.array(ids), times, pa.array(payloads)], schema=LANDING)
    write_deltalake(str(landing), table, mode="append")


@dataclass(frozen=True, slots=True)
class Running:
    """Tasks of one stage: executor → how many run, how many ended well."""

    stage: int
    active: Mapping[str, int]
    ended: Mapping[str, int]


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

    def stages(self) -> list[Running]:
        """The stages that run now, with their tasks."""
        (application,) = self._get("")
        found = []
        for stage in self._get(f"/{application['id']}/stages?status=active"):
            path = f"/{application['id']}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=100"
            active: dict[str, int] = {}
            ended: dict[str, int] = {}
            for task in self._get(path):
                into = {"RUNNING": active, "SUCCESS": ended}.get(task["status"])
                if into is not None:
                    into[task["executorId"]] = into.get(task["executorId"], 0) + 1
            found.append(Running(stage["stageId"], active, ended))
        return found

    def idle_but_needed(self) -> str | None:
        """An executor whose tasks of a running stage have all ended, while another's go on: its map output is still needed."""
        for stage in self.stages():
            waiting = sorted(stage.ended.keys() - stage.active.keys())
            if waiting and stage.active and sum(stage.ended.values()) + sum(stage.active.values()) > 2:
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
