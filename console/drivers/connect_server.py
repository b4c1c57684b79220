"""The checks of `console doctor` for a region whose Spark is behind Spark Connect."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from console.drivers.prerequisites import Prerequisite
from console.drivers.survey import agent_command, agent_environment
from console.errors import DataError
from console.model import codec
from console.model.connect_facts import ConnectFacts
from console.model.region import Region

_SECONDS = 90.0  # an agent's process starts, and tries a server that does not answer for some seconds
_NAME = "spark connect"


def look(region: Region) -> Iterator[Prerequisite]:
    """Ask the server what it is. Nothing is created or changed there."""
    request = {"remote": region.spark.remote, "conf": dict(region.spark.conf)}
    try:
        done = subprocess.run(
            agent_command("connect"), input=json.dumps(request), env=agent_environment(), capture_output=True, text=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        yield Prerequisite(_NAME, False, f"{region.spark.remote}: {str(error)[:200]}", "correct spark.remote")
        return
    if isinstance(answer, dict) and "error" in answer:
        yield Prerequisite(_NAME, False, str(answer["error"]["message"]), str(answer["error"]["hint"]))
        return
    yield from _judged(region.spark.remote, answer)


def _judged(remote: str, answer: Any) -> Iterator[Prerequisite]:
    try:
        facts = codec.decode(ConnectFacts, answer)
    except DataError as error:
        yield Prerequisite(_NAME, False, f"{remote}: {error}", "use the same version of console on both sides")
        return
    yield _spark(remote, facts)
    yield _delta(facts)
    if facts.features:
        yield Prerequisite(
            "delta defaults",
            None,
            f"new tables that others make there get {', '.join(facts.features)}",
            "docs/clusters.md#databricks says what console reads of these; tables of console's own have none of them",
        )


def _spark(remote: str, facts: ConnectFacts) -> Prerequisite:
    named = f"{remote}: Spark {facts.version}" + (f", Databricks {facts.databricks}" if facts.databricks else "")
    if facts.version == facts.client:
        return Prerequisite(_NAME, True, named)
    return Prerequisite(
        _NAME, None, f"{named}: PySpark here is {facts.client}, and these two were not tried", "docs/clusters.md"
    )


def _delta(facts: ConnectFacts) -> Prerequisite:
    if facts.databricks:
        return Prerequisite("delta", None, "Databricks' own, which was not tried", "docs/clusters.md#databricks")
    if facts.delta:
        return Prerequisite("delta", True, "its sessions have Delta's extension")
    fix = "start the server with Delta's jars, spark.sql.extensions and spark.sql.catalog.spark_catalog (docs/clusters.md)"
    return Prerequisite("delta", False, "its sessions have no Delta", fix)
