"""The service of a region behind its socket, without its lock and without a Spark: `python -m tests.bench.agent_process WAREHOUSE`."""

import asyncio
import os
import sys
from pathlib import Path

from console import paths
from console.agent.server import Server
from console.agent.service import Service
from console.agent.settings import Settings


async def main(warehouse: str) -> None:
    service = Service(Path(warehouse), Settings(region="eu"), -1)
    await Server(service, paths.socket_path(warehouse)).run()


if __name__ == "__main__":
    os.environ["JAVA_HOME"] = os.devnull  # a step that needs Spark fails, after what is measured here
    asyncio.run(main(sys.argv[1]))
