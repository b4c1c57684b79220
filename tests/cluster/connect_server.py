"""A real Spark Connect server on this machine, a process of its own that no agent has started."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from console import paths
from console.agent.object_store import spark_conf
from console.agent.spark_process import BRIEF
from tests.cluster.standalone import HOST, free_port

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
UP_SECONDS = 90.0
# static settings: they are the server's own, and no session can set them
STATIC = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.grpc.binding.address": HOST,
}


@dataclass(slots=True, kw_only=True)
class ConnectServer:
    """folder: for its log and scratch files;  environment: more of it;  bucket: whether it reaches one, by that environment"""

    folder: Path
    master: str = "local[2]"
    environment: Mapping[str, str] = field(default_factory=dict)
    bucket: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self.port}"

    @property
    def jvm(self) -> int:
        """Its process: the script that starts it becomes Java."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self.port = self.port or free_port()
        settings = {
            **STATIC,
            "spark.driver.extraClassPath": ":".join(map(str, self._jars())),
            "spark.driver.extraJavaOptions": f"{BRIEF} -Dderby.system.home={self.folder}",
            "spark.local.dir": str(self.folder),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.connect.grpc.binding.port": str(self.port),
            **(spark_conf.settings() if self.bucket else {}),
            **self.conf,
        }
        named = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [
            str(SUBMIT),
            "--class",
            CLASS,
            "--master",
            self.master,
            "--name",
            "connect",
            *named,
            "spark-internal",
        ]
        environment = {**os.environ, **self.environment, "SPARK_LOCAL_IP": HOST}
        with (self.folder / "connect.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )  # fmt: skip
        self._until_up()

    def stop(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def _jars(self) -> list[Path]:
        return [*sorted(paths.jars_dir().glob("*.jar")), *(spark_conf.jars() if self.bucket else ())]

    def _until_up(self) -> None:
        until = time.monotonic() + UP_SECONDS
        while time.monotonic() < until and self._process is not None and self._process.poll() is None:
            with suppress(OSError), socket.create_connection((HOST, self.port), 1.0):
                return
            time.sleep(0.1)
        raise AssertionError(f"no server at {self.url}: {(self.folder / 'connect.log').read_text()[-2000:]}")
