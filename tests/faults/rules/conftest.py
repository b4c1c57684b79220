"""One JVM for the rules of a worker. Foreign writers are deltalake's: another library in another language, and quick."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from tests.life.region import SHORT_LIVED


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkHandle]:
    # what an inventory may switch on for every new table, and no table of ours may have (rule 9)
    defaults = "spark.databricks.delta.properties.defaults."
    nasty = {
        f"{defaults}enableDeletionVectors": "true",
        f"{defaults}enableRowTracking": "true",
        f"{defaults}enableTypeWidening": "true",
        f"{defaults}enableInCommitTimestamps": "true",
        f"{defaults}columnMapping.mode": "name",
        f"{defaults}checkpointPolicy": "v2",
        f"{defaults}appendOnly": "true",
    }
    started = SparkHandle(Settings(region="eu", master="local[2]", conf={**SHORT_LIVED, **nasty}), -1)
    gc.freeze()  # a collection after each test passes over what was there before the first
    yield started
    started.stop()


@pytest.fixture
def session(spark: SparkHandle, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Its JVM forgets a test's tables and queries: hundreds of them fill a heap of 1 GiB.

    Delta keeps a snapshot of every table, with its plan, for an hour; Python's garbage keeps the plan of each query.
    """
    assert request.node.get_closest_marker("spark"), "what starts Spark says so: areas and mutation runs go by it"
    yield spark.session()
    gc.collect()
    spark.session()._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
