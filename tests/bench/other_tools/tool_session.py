"""The Spark of another tool, in the tool's own Python: started before it, so that it has the settings of our agent's."""

from pathlib import Path
from typing import Any

from tests.bench.other_tools.task import BackfillTask

SCHEMA = "raw"


def started(folder: Path, task: BackfillTask) -> Any:
    """A session that knows the landing table as `raw.landing`; what the tool makes goes below `lake`."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in task.conf.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder / "lake")).getOrCreate()
    session.sql(f"CREATE DATABASE {SCHEMA}")
    session.sql(f"CREATE TABLE {SCHEMA}.landing USING delta LOCATION '{task.landing}'")
    return session
