"""What `console doctor` wants to know of a Spark Connect server. Nothing is created or changed there."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

from console.agent.connect.sessions import open_session
from console.agent.spark_process import DELTA
from console.model.connect_facts import ConnectFacts

_DATABRICKS = "spark.databricks.clusterUsageTags.sparkVersion"
# defaults of new tables, which Delta and Databricks set by the same names → the values that leave a feature out
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_FEATURES = {
    "enableDeletionVectors": ("", "false"),
    "enableRowTracking": ("", "false"),
    "columnMapping.mode": ("", "none"),
    "enableTypeWidening": ("", "false"),
    "enableInCommitTimestamps": ("", "false"),
}


def read_facts(remote: str, conf: Mapping[str, str]) -> ConnectFacts:
    """raises  Unreachable if no server answers; RegionError E_CONNECT, E_EXTRA"""
    session = open_session(remote, conf)
    try:
        extension = "spark.sql.extensions"
        return ConnectFacts(
            version=session.version,
            client=metadata.version("pyspark"),
            delta=DELTA[extension] in _setting(session, extension),
            databricks=_setting(session, _DATABRICKS),
            features=tuple(
                name
                for name, without in _FEATURES.items()
                if _setting(session, _DEFAULTS + name).lower() not in without
            ),
        )
    finally:
        session.stop()


def _setting(session: Any, name: str) -> str:
    """A server's setting; "" if it has none, or does not tell: managed ones hide those that they do not know."""
    from pyspark.errors import PySparkException

    try:
        return str(session.conf.get(name, "") or "")
    except PySparkException:
        return ""
