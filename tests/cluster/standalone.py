"""A real Spark standalone cluster: a master and workers, each a process of its own, of this machine or of hosts of their own."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from console.agent.spark_process import BRIEF
from tests.cluster.hosts import OtherHost

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
HOST = "127.0.0.1"
UP_SECONDS = 90.0
CORES = 2  # of a worker: slots, of which the machine need not have as many
EXECUTOR_MB = 640
# Executors that live for seconds. The driver notices one that is gone by its connection; the timeouts are for one that hangs.
EXECUTORS = {
    "spark.executor.memory": f"{EXECUTOR_MB}m",
    "spark.executor.extraJavaOptions": BRIEF,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": BRIEF,
}


@dataclass(slots=True)
class Worker:
    process: subprocess.Popen[bytes]
    web: int

    def executors(self) -> list[int]:
        """Process ids of its executors, which are in its session."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_executor(pid)]

    def _is_executor(self, pid: int) -> bool:
        with suppress(OSError):  # it has ended
            ours = os.getsid(pid) == self.process.pid
            return ours and b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False


@dataclass(slots=True)
class Standalone:
    """A master and its workers, below one folder. host: the address of this machine at which the workers reach the master"""

    folder: Path
    host: str = HOST
    workers: list[Worker] = field(default_factory=list)
    _master: subprocess.Popen[bytes] | None = None
    _port: int = 0
    _web: int = 0

    @property
    def url(self) -> str:
        return f"spark://{self.host}:{self._port}"

    def start(self, workers: int = 2) -> None:
        self._port, self._web = free_port(), free_port()
        at = ("--host", self.host, "--port", str(self._port), "--webui-port", str(self._web))
        self._master = self._run("master", self.host, CLASS, "org.apache.spark.deploy.master.Master", *at)
        for _ in range(workers):
            self.add_worker()
        self.until_alive(workers)

    def add_worker(self, on: OtherHost | None = None) -> Worker:
        """on: where it runs; None for this machine"""
        web = free_port()
        address, work = (on.address, Path("/tmp")) if on else (self.host, self.folder)
        worker = self._run(
            f"worker-{web}", address, *(on.enter if on else ()), CLASS, "org.apache.spark.deploy.worker.Worker",
            "--host", address, "--cores", str(CORES), "--memory", "1g", "--webui-port", str(web),
            "--work-dir", str(work / f"work-{web}"), self.url, disk=work,
        )  # fmt: skip
        self.workers.append(Worker(worker, web))
        return self.workers[-1]

    def kill(self, worker: Worker) -> None:
        """The worker as its host would end it: with its executors, without a word to the master."""
        self.workers.remove(worker)
        _kill(worker.process)

    def state(self) -> dict[str, Any]:
        """What the master says of itself."""
        with urllib.request.urlopen(f"http://{self.host}:{self._web}/json/", timeout=5) as answer:
            said: dict[str, Any] = json.load(answer)
        return said

    def until_alive(self, workers: int) -> None:
        until = time.monotonic() + UP_SECONDS
        while time.monotonic() < until:
            with suppress(OSError, ValueError):  # a master that starts answers with nothing at first
                if sum(each["state"] == "ALIVE" for each in self.state()["workers"]) == workers:
                    return
            time.sleep(0.1)
        raise AssertionError(f"not {workers} workers after {UP_SECONDS:g} s: {self._said()}")

    def stop(self) -> None:
        for worker in self.workers:
            _kill(worker.process)
        if self._master is not None:
            _kill(self._master)

    def _run(self, name: str, address: str, *command: str | Path, disk: Path | None = None) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_DAEMON_MEMORY": "256m",
            # its server for submitted programs has a fixed port
            "SPARK_DAEMON_JAVA_OPTS": f"{BRIEF} -Dspark.master.rest.enabled=false",
            "SPARK_LOCAL_IP": address,
            "SPARK_LOCAL_DIRS": str(disk or self.folder),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*map(str, command)], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )  # fmt: skip

    def _said(self) -> str:
        return " ".join(path.read_text()[-300:] for path in self.folder.glob("*.log"))


@dataclass(frozen=True, slots=True)
class Events:
    """What Spark's drivers wrote to their event logs: Spark's own record of executors, tasks and stages."""

    folder: Path

    @property
    def conf(self) -> dict[str, str]:
        self.folder.mkdir(exist_ok=True)
        return {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.folder.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }

    def of(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The application, and what it wrote: ids of executors, jobs and stages begin anew in each."""
        for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            for line in file.read_text().splitlines():
                with suppress(ValueError):  # the last line of a driver that was killed
                    event: dict[str, Any] = json.loads(line)
                    if event["Event"] == kind:
                        yield file.name, event

    def ran(self) -> Counter[int]:
        """Web port of a worker → tasks that its executors ended well."""
        port = {
            (app, event["Executor ID"]): int(
                event["Executor Info"]["Log Urls"]["stdout"].split("/")[2].rpartition(":")[2]
            )
            for app, event in self.of("SparkListenerExecutorAdded")
        }
        return Counter(
            port[app, event["Task Info"]["Executor ID"]]
            for app, event in self.of("SparkListenerTaskEnd")
            if event["Task End Reason"]["Reason"] == "Success"
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
