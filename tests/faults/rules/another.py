"""An agent's process over the JVM of the one that started it: it dies by SIGKILL for real, and costs no JVM of its own.

python -m tests.faults.rules.another WAREHOUSE copy RUN     one run of the copy `daily`
python -m tests.faults.rules.another WAREHOUSE carry        what an agent that starts does about its rollout
python -m tests.faults.rules.another WAREHOUSE compare      the comparison of `compared`, recorded
"""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import date
from pathlib import Path
from typing import Any

from console.agent import queries
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance.compaction import compact, crowded
from console.agent.maintenance.retention import expire
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from tests.faults.rules.compared import compare_recorded
from tests.faults.rules.tables import state

SHORT = state("landing", retention_days=10, time="day")


def line(warehouse: Path, spark: SparkHandle) -> PipelineController:
    return PipelineController(warehouse, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))


def dies(session: Any, armed: Path, point: str, warehouse: Path, *words: str) -> None:
    """Have another process do it, and see it die at this point."""
    armed.mkdir(exist_ok=True)
    (armed / point).touch()
    gateway = session.sparkContext._gateway.gateway_parameters
    env = {
        **os.environ,
        "CONSOLE_CRASH_DIR": str(armed),
        "PYSPARK_GATEWAY_PORT": str(gateway.port),
        "PYSPARK_GATEWAY_SECRET": str(gateway.auth_token),
    }
    command = [sys.executable, "-m", "tests.faults.rules.another", str(warehouse), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, f"{done.stdout}{done.stderr[-2000:]}"
    assert list(armed.iterdir()) == [], "it died elsewhere"


def carried(opened: PipelineController) -> str:
    """Go on as an agent does that starts; where the rollout stands when it can go no further alone."""
    stands = threading.Event()

    def hear(_: Any) -> None:
        status = opened.recorder.status
        if status.held or status.state == "awaiting-confirmation":
            stands.set()

    opened.recorder.watch(0, hear)
    opened.resume()
    assert stands.wait(300), opened.recorder.status
    status = opened.recorder.status
    return f"{status.shown}: {status.why}" if status.held else status.shown


def compacted(session: Any, warehouse: Path) -> None:
    for crowd in crowded(str(warehouse / "landing"), many=3):
        compact(session, str(warehouse / "landing"), crowd)


def _shared() -> SparkHandle:
    """The JVM that the environment names, with its one SparkContext."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    spark = SparkHandle(Settings(region="eu"), -1)
    spark._root = SparkSession(SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.getConf())))
    return spark


def main() -> None:
    warehouse, *words = sys.argv[1:]
    spark = _shared()
    opened = line(Path(warehouse), spark)
    match words:
        case ["copy", run]:
            print(json.dumps(queries.run_copy(queries.PipelineReader(opened), spark, "daily", run, "eve")))
        case ["carry"]:
            print(carried(opened))
        case ["compact"]:
            compacted(spark.session(), Path(warehouse))
        case ["compare"]:
            print(compare_recorded(spark.session(), Path(warehouse)))
        case ["expire", day]:
            print(expire(spark.session(), str(Path(warehouse) / "landing"), SHORT, date.fromisoformat(day)))


if __name__ == "__main__":
    main()
