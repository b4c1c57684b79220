"""Sessions of a Spark Connect server, with the settings that every session of an agent has."""

import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from console.agent.errors import ServerUnreachable
from console.agent.failure import cause
from console.agent.object_store.object_path import ObjectPath
from console.agent.object_store.spark_conf import WRITTEN
from console.agent.spark_process import FIXED_IN_SESSION
from console.errors import RegionError, installing

LIBRARIES = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")
# pyspark would go on trying for ten minutes, in one of the agent's few threads; these take some 4 s
TRIES = 4


def check_region(warehouse: Path, remote: str) -> None:
    """Before the region's lock: an agent that cannot work keeps nobody out.

    raises  RegionError E_CONNECT for a warehouse on a disk, which on the server's host may be another folder; E_EXTRA
    """
    if not isinstance(warehouse, ObjectPath):
        raise RegionError(
            f"{remote}: {warehouse} is on this host's disk, which a Spark Connect server may not see",
            hint="a warehouse in a bucket, or spark: {master: local[2]} (docs/clusters.md)",
            code="E_CONNECT",
        )
    require_libraries()


def require_libraries() -> None:
    """raises  RegionError E_EXTRA"""
    for name in LIBRARIES:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            raise RegionError(
                f"{name} is not installed, by which an agent reaches Spark Connect",
                hint=installing("connect"),
                code="E_EXTRA",
            ) from None


def open_session(remote: str, conf: Mapping[str, str]) -> Any:
    """A session of its own, with views and settings that no other one sees. The caller stops it.

    conf    of the region's file, below the settings that are not configurable
    raises  ServerUnreachable if no server answers there; RegionError E_CONNECT for a setting that no session can have
    """
    require_libraries()
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # by which pyspark's functions and types are those of Connect
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=TRIES)])
    try:
        _ = session.version  # the first call, by which the server shows itself
    except PySparkException as error:
        session.client.close()
        raise _unreachable(remote, error) from None
    for name, value in {**WRITTEN, **conf, **FIXED_IN_SESSION}.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            session.stop()
            raise RegionError(
                f"{remote}: {name} cannot be set in a session: {cause(error)}",
                hint="set it where the server is started, and leave it out of spark.conf",
                code="E_CONNECT",
            ) from None
    return session


def _unreachable(remote: str, error: Exception) -> ServerUnreachable:
    return ServerUnreachable(
        f"{remote}: no Spark Connect server answers: {cause(error)}",
        hint="console doctor; start the server, or correct spark.remote in the region's file",
    )
