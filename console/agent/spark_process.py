"""Spark's configuration, and the start and end of its JVM."""

import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from console import paths
from console.agent.cluster.defaults_file import read_defaults
from console.agent.object_store import spark_conf
from console.agent.settings import Settings
from console.errors import RegionError
from console.model.spark_master import SparkMaster, spark_master
from console.text import redacted, secret

# Not configurable in the inventory: correctness depends on them (docs/design.md, rules 3, 7; docs/security.md).
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
FIXED_IN_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # a value that does not convert stops its batch instead of becoming NULL
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    # Parameters are bound in the analysed plan: Spark's newer way is part of its parser, which Delta's parser replaces.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
_FIXED = {**DELTA, **FIXED_IN_SESSION}
GC = "-XX:+UseParallelGC -Xshare:auto"
# For a JVM that lives for seconds, where optimised compilation costs more than it saves. With the first compiler alone
# the code cache would be 48 MB, too small for Spark, which would compile the same code again and again.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto"
OUT_OF_MEMORY = (3, 52)  # exit codes: of the JVM with -XX:+ExitOnOutOfMemoryError, and of Spark (SparkExitCode.OOM)
QUIET = "-Xlog:disable -Xlog:all=error:stderr"  # an archive that does not fit is not reported
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_DRIVER = {
    "spark.ui.enabled": "false",
    # Spark keeps the code of 100 generated classes, fewer than a rollout beside its feeds has: what runs again was compiled anew,
    # and interpreted at first.
    "spark.sql.codegen.cache.maxEntries": "400",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": GC,
    "spark.log.level": "ERROR",
}
# Of a cluster these are left to Spark and its operator, or chosen by its size (`cluster/size`).
_LOCAL = {
    **_LOOPBACK,
    **_DRIVER,
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Every broadcast join holds a page until it is collected: by Spark's own rule 64 MiB of a heap of 2 GiB, for ten rows.
    "spark.buffer.pageSize": "4m",
}


def exit_reason(code: int) -> str:
    """The meaning of a JVM's exit code (negative: the signal that ended it)."""
    if code in OUT_OF_MEMORY:
        return "its memory ran out"
    if code == -signal.SIGKILL:
        return "it was killed, as the kernel does where the machine's memory runs out"
    return f"it ended by signal {-code}" if code < 0 else f"it exited with {code}"


def slots_of(master: str) -> int:
    """Concurrent tasks of a local master: one more than configured, so that a build leaves a slot for live feeds; 0 of a
    cluster, which has as many as its executors (`cluster/size`)."""
    known = spark_master(master)
    return (known.cores or os.cpu_count() or 1) + 1 if known.is_local else 0


def configuration(settings: Settings, slots: int, *, in_bucket: bool = False) -> Any:
    """The SparkConf of a region: what is chosen here, under the operator's defaults, under the region's own settings.

    slots    of a local master; 0 for a cluster, which is not given the settings of a small machine
    raises   RegionError E_JARS without Delta's jars; E_DEFAULTS if the operator's defaults cannot be read
    """
    from pyspark import SparkConf

    jars = sorted(str(jar) for jar in paths.jars_dir().glob("*.jar"))
    if not jars:
        raise RegionError(f"no Delta jars in {paths.jars_dir()}", hint="console setup", code="E_JARS")
    conf = SparkConf(loadDefaults=False)
    theirs = {**read_defaults(settings.spark_defaults), **settings.conf}
    if in_bucket:
        jars += map(str, spark_conf.jars())  # behind Delta's, which the class archive covers
        theirs = {**spark_conf.settings(), **({} if slots else spark_conf.executor_environment()), **theirs}
    own = {**(_LOCAL if slots else _of_cluster(spark_master(settings.master))), **theirs, **_FIXED}
    if slots:  # on the class path, which the class archive covers
        own["spark.driver.extraClassPath"] = ":".join(jars)
        own["spark.driver.extraJavaOptions"] += _archived(paths.archive_path())
        own.setdefault("spark.local.dir", tempfile.gettempdir())
    else:
        own["spark.jars"] = ",".join([*jars, *filter(None, own.get("spark.jars", "").split(","))])
        own["spark.submit.deployMode"] = "client"  # the driver is the agent's own JVM, which holds the region's lock
    own["spark.master"] = f"local[{slots}]" if slots else settings.master
    own["spark.app.name"] = f"console {settings.region}"
    own.setdefault("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir()) / "console-spark-warehouse"))
    for name, value in own.items():
        conf.set(name, value)
    if slots:
        # otherwise Spark does not start on a host whose name does not resolve
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return conf


def _of_cluster(master: SparkMaster) -> dict[str, str]:
    """Executors reach the driver by its address: of a master that only this machine reaches, by that of loopback."""
    return {**(_LOOPBACK if master.on_loopback else {}), **_DRIVER}


def java_gateway(conf: Any, lock_fd: int) -> Any:
    """A gateway to Java: pyspark's own if there is one, since pyspark uses its first one, alive or dead."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    # The JVM inherits the lock, which stays held until both Python and JVM have exited.
    if lock_fd >= 0:
        os.set_inheritable(lock_fd, True)
    return launch_gateway(public_settings(conf), popen_kwargs={"pass_fds": (lock_fd,)} if lock_fd >= 0 else {})


def close(root: Any, gateway: Any) -> None:
    """Stop Spark and close the connections to its JVM: a late call with an old session fails from then on."""
    with suppress(Exception):  # the JVM is ended by the end of its input, or killed
        root.stop()
    with suppress(Exception):
        gateway.shutdown()


def forget_gateway() -> None:
    """pyspark keeps its first gateway, alive or dead, and would use it for the next Spark."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def first_session(conf: Any, gateway: Any) -> Any:
    """The first SparkSession of a JVM, with the start of its Spark; takes seconds. raises any error of Spark"""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession(SparkContext(gateway=gateway, conf=conf))
    _resolve_helpers(session)
    return session


def _resolve_helpers(session: Any) -> None:
    """Resolve the Java helpers of pyspark's own calls once for the process.

    Py4J asks the JVM for such a name at every use, and the JVM looks for it in each imported package: 0.3 ms of processor
    time, seven times in a live step.
    """
    helpers = session._jvm.PythonUtils
    session._jvm.PythonUtils = helpers
    for name in ("toSeq", "toArray"):
        setattr(helpers, name, getattr(helpers, name))


def public_settings(conf: Any) -> Any:
    """The settings for the JVM's command line, without secrets, since every user of the host can read it."""
    from pyspark import SparkConf

    public = SparkConf(loadDefaults=False)
    for name, value in conf.getAll():
        if name.startswith(spark_conf.EXECUTOR_ENV):
            continue  # for the executors alone
        if name.startswith("spark.driver.") or not (secret(name) or redacted(value) != value):
            public.set(name, value)
    return public


def _archived(archive: Path) -> str:
    return f" -XX:SharedArchiveFile={archive} {QUIET}" if archive.is_file() else ""
