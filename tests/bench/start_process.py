"""From the start of an interpreter to the end of the first Spark job: `agent FOLDER` or `bare`. Prints processor seconds of the process tree.

agent  the region's agent, over a folder without a pipeline
bare   a SparkSession with Delta, as its documentation begins
"""

import os
import sys
from pathlib import Path

from tests.bench.processor_time import of_tree


def agent(warehouse: Path) -> None:
    from console.agent.service import Service
    from console.agent.settings import Settings

    (warehouse / "_console").mkdir()
    region = Service(warehouse, Settings(region="eu", master="local[2]"), -1).agent
    region.start()
    assert region.spark.session().range(1).count() == 1


def bare() -> None:
    from pyspark.sql import SparkSession

    from console import paths

    jars = ",".join(sorted(str(jar) for jar in paths.jars_dir().glob("*.jar")))
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    assert builder.getOrCreate().range(1).count() == 1


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["agent", folder]:
            agent(Path(folder))
        case ["bare"]:
            bare()
        case other:
            raise SystemExit(f"agent FOLDER or bare, not {other}")
    print(of_tree(), flush=True)
    os._exit(0)  # the JVM ends with the end of its input
