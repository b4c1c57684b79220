"""A Spark that fails to start, for real: in a process of its own, since pyspark keeps one JVM per process."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark
START = """
import json, sys
import pyspark
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from tests.life.region import SHORT_LIVED

class Killed(pyspark.SparkContext):
    def __init__(self, gateway, conf):
        gateway.proc.kill()
        gateway.proc.wait()
        super().__init__(gateway=gateway, conf=conf)

if sys.argv[1] == "dies":
    pyspark.SparkContext = Killed
nowhere = {"spark.driver.bindAddress": "203.0.113.7", "spark.port.maxRetries": "0"}
conf = {**SHORT_LIVED, **(nowhere if sys.argv[1] == "lives" else {})}
spark = SparkHandle(Settings(region="eu", master="local[2]", conf=conf), -1)
pids, errors = set(), []
for _ in range(2):
    try:
        spark.session()
    except Exception as error:
        errors.append(type(error).__name__)
    pids.add(spark._jvm.proc.pid)
print(json.dumps({"errors": errors, "lost": spark.lost, "javas": len(pids)}))
"""


@pytest.mark.parametrize("java", ["dies", "lives"])
def test_a_java_in_which_no_spark_came_up_is_the_only_one_and_known_to_be_dead(java: str) -> None:
    """An agent whose Java died while Spark started is one that lost its driver: it begins anew. Where Java lives, the same
    one is asked again."""
    done = subprocess.run([sys.executable, "-c", START, java], capture_output=True, text=True, check=True, timeout=300)
    data = json.loads(done.stdout.splitlines()[-1])
    assert len(data["errors"]) == 2, done.stderr
    assert (data["lost"], data["javas"]) == (java == "dies", 1)
