"""A JVM for tests that come one after the other: tells port and secret of its gateway, and lives until its input is closed."""

import json
import sys

from pyspark.java_gateway import launch_gateway

from console.agent import session
from tests.life.region import SHORT_LIVED

if __name__ == "__main__":
    settings = session.Settings("eu", "local[2]", SHORT_LIVED)
    gateway = launch_gateway(session._open(session._conf(settings, session._slots(settings.master))))
    reached = gateway.java_parameters
    print(
        json.dumps({"PYSPARK_GATEWAY_PORT": str(reached.port), "PYSPARK_GATEWAY_SECRET": reached.auth_token}),
        flush=True,
    )
    sys.stdin.read()
    gateway.proc.stdin.close()
    gateway.proc.wait()
