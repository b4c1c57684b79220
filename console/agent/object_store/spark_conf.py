"""Spark's settings for a warehouse in a bucket: Hadoop's connector, and credentials from where the agent has its own."""

import os
from pathlib import Path

from console import paths
from console.agent.object_store.s3 import S3Access
from console.errors import RegionError

EXECUTOR_ENV = "spark.executorEnv."
WRITTEN = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"
}  # INT96 has no statistics, by which files are skipped
_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
)  # fmt: skip
_WEB_IDENTITY = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"


def jars() -> tuple[Path, ...]:
    """raises  RegionError E_EXTRA if they were not set up"""
    folder = paths.jars_dir() / "s3"
    found = tuple(sorted(folder.glob("*.jar")))
    if not found:
        raise RegionError(
            f"no jars in {folder}, by which Spark reaches a bucket", hint="console setup --with s3", code="E_EXTRA"
        )
    return found


def executor_environment() -> dict[str, str]:
    """Credentials for a cluster's executors, which inherit their worker's environment, not the agent's. Never for a command line."""
    return {f"{EXECUTOR_ENV}{name}": os.environ[name] for name in _CREDENTIALS if os.environ.get(name)}


def settings() -> dict[str, str]:
    """Without keys: the JVM inherits the agent's environment, and asks the instance as the agent does."""
    access = S3Access.of(os.environ)
    hadoop = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",  # paths begin with s3: everywhere, as in Delta's logs
        "fs.s3a.input.stream.type": "classic",  # the default of 3.5 needs a library more
        "fs.s3a.endpoint": access.endpoint,
        "fs.s3a.endpoint.region": access.region,
        "fs.s3a.path.style.access": "true" if access.endpoint else "",
        "fs.s3a.connection.ssl.enabled": "false" if access.endpoint.startswith("http://") else "",
        "fs.s3a.aws.credentials.provider": _WEB_IDENTITY if os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE") else "",
    }
    own = {f"spark.hadoop.{name}": value for name, value in hadoop.items() if value}
    return {**own, **WRITTEN}
