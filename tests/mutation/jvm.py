"""A JVM for tests that come one after the other: tells port and secret of its gateway, and lives until its input is closed."""

import json
import sys

from pyspark.java_gateway import launch_gateway

from console.agent import spark_process
from console.agent.settings import Settings
from tests.life.region import SHORT_LIVED

if __name__ == "__main__":
    settings = Settings(region="eu", master="local[2]", conf=SHORT_LIVED)
    gateway = launch_gateway(
        spark_process.public_settings(spark_process.configuration(settings, spark_process.slots_of(settings.master)))
    )
    reached = gateway.java_parameters
    print(
        json.dumps({"PYSPARK_GATEWAY_PORT": str(reached.port), "PYSPARK_GATEWAY_SECRET": reached.auth_token}),
        flush=True,
    )
    sys.stdin.read()
    gateway.proc.stdin.close()
    gateway.proc.wait()
