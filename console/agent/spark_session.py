"""The region's Spark: started at the first data job, its JVM holding the region's lock beside the agent."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console import crash, paths
from console.agent.object_store import spark_conf
from console.agent.object_store.object_path import in_bucket
from console.agent.spark_jobs import JobGroup
from console.agent.store.host_folder import own_folder
from console.errors import DataError, RegionError
from console.model import codec
from console.model.region import FOLLOW, Follow
from console.text import redacted, secret

# Not configurable in the inventory: correctness depends on them (docs/design.md, rules 3, 7; docs/security.md).
_FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
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
GC = "-XX:+UseParallelGC -Xshare:auto"
# For a JVM that lives for seconds, where optimised compilation costs more than it saves. With the first compiler alone
# the code cache would be 48 MB, too small for Spark, which would compile the same code again and again.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto"
OUT_OF_MEMORY = (3, 52)  # exit codes: of the JVM with -XX:+ExitOnOutOfMemoryError, and of Spark (SparkExitCode.OOM)
STOP_SECONDS = 60.0  # time for Spark to stop
EXIT_SECONDS = 20.0  # time for a JVM to exit whose Spark has stopped, after which it is killed
KILLED_SECONDS = 5.0  # time for a killed JVM to exit, after which it is abandoned
QUIET = "-Xlog:disable -Xlog:all=error:stderr"  # an archive that does not fit is not reported
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
    "spark.driver.memory": "2g",
    # Every broadcast join holds a page until it is collected: by Spark's own rule 64 MiB of a heap of 2 GiB, for ten rows.
    "spark.buffer.pageSize": "4m",
    "spark.driver.extraJavaOptions": GC,
    "spark.log.level": "ERROR",
}


@dataclass(slots=True, kw_only=True)
class Settings:
    """The agent's start settings; stored in `_console/agent.json`, so that it can restart without project files.

    conf                   Spark's configuration, by its names
    tick_seconds           between two ticks of the follower
    rollback_window_hours  how long a rollback to the previous release is possible
    keep_failed_hours      how long a failed rollout keeps its versions
    follow_…               `model.region.Follow`; sent and stored only where it is not the default
    """

    region: str = ""
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    tick_seconds: float = 1.0
    rollback_window_hours: float = 72.0
    keep_failed_hours: float = 72.0
    follow_share: float = field(default=FOLLOW.share, metadata=codec.QUIET)
    follow_lag_seconds: float | None = field(default=None, metadata=codec.QUIET)
    follow_idle_seconds: float | None = field(default=FOLLOW.idle_seconds, metadata=codec.QUIET)

    @property
    def follow(self) -> Follow:
        return Follow(self.follow_share, self.follow_lag_seconds, self.follow_idle_seconds)


class SparkHandle:
    """Starts Spark at the first use, gives each user a session of its own, and ends it while nobody uses it.

    slots         tasks at once of a local master; 0 for another master
    ending        the agent ends on purpose: a JVM that exits from now on is not lost
    last_used     monotonic: when a session was last asked for, or a use ended
    asleep_since  seconds since 1970, UTC: since when it has no Spark; 0 while it has one
    """

    def __init__(self, settings: Settings, lock_fd: int, warehouse: str = "") -> None:
        """warehouse: its path or URI; Spark is set up to reach it where it is in a bucket"""
        self._settings = settings
        self._in_bucket = in_bucket(warehouse)
        self._lock_fd = lock_fd
        self._jvm: Any = None  # the process's only gateway to Java, even if no Spark started in it
        self._root: Any = None
        self._starting = threading.Lock()
        self._killed = ""  # why the JVM was killed
        self._stopping = False  # its context is stopped on purpose, and its JVM is used again
        self._sleeping = False  # its JVM is ended on purpose: one that exits now is not lost
        self._left: Any = None  # the process of an ended JVM that has not exited yet
        self._uses = 0
        self._counting = threading.Lock()
        self.ending = False
        self.last_used = time.monotonic()
        self.asleep_since = time.time()
        self.slots = _slots(settings.master)

    @property
    def started(self) -> bool:
        return self._root is not None

    @property
    def lost(self) -> bool:
        """Whether the JVM of a started, or starting, Spark has exited unexpectedly."""
        return not (self.ending or self._sleeping) and self._gone()

    @property
    def ended(self) -> str:
        """How its JVM exited, as text; "" while it runs, or if none was started."""
        process = self._jvm.proc if self._jvm is not None else None
        code = None if process is None else process.poll()
        return "" if code is None else self._killed or _ended(code)

    def _gone(self) -> bool:
        return self.ended != ""

    def session(self, **conf: str) -> Any:
        """A new SparkSession, with its own views and settings, over the one SparkContext.

        It may be used for `follow.idle`, and within `in_use` as long as that lasts.

        conf    settings, with `__` for the dots in their names
        raises  RegionError E_JARS without Delta's jars, E_JVM while an ended JVM does not exit; any error of Spark
        """
        return self._new_session(conf, renews=True)

    def passing_session(self) -> Any:
        """A session whose use does not keep Spark from being ended later; for work that the sleeper waits for by itself."""
        return self._new_session({}, renews=False)

    def _new_session(self, conf: Mapping[str, str], *, renews: bool) -> Any:
        try:
            with self._starting:  # a JVM that is being ended gives no session, and one that has given one is not ended
                session = self._started_root().newSession()
                for name, value in conf.items():
                    session.conf.set(name.replace("__", "."), value)
                if renews:
                    self.last_used = time.monotonic()
        except Exception:
            self.look()
            raise
        return session

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Context in which Spark is not ended, however long it lasts."""
        with self._counting:
            self._uses += 1
        try:
            yield
        finally:
            with self._counting:
                self._uses -= 1
                self.last_used = time.monotonic()

    def sleep(self, idle_seconds: float) -> bool:
        """End the JVM, unless a session was asked for within that time, or it is in use; the next session starts another.

        returns  whether it has ended it
        """
        with self._starting:
            used = self._uses or time.monotonic() - self.last_used < idle_seconds
            if used or self._root is None or self.ending or self._gone():
                return False
            self._sleeping = True
            try:
                self._end()
            finally:
                self._sleeping = False
            return True

    def _end(self) -> None:
        root, jvm, self._root = self._root, self._jvm, None
        stopping = threading.Thread(target=_close, args=(root, jvm), name="stop", daemon=True)
        stopping.start()
        stopping.join(STOP_SECONDS)
        process = jvm.proc
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()  # the JVM exits at the end of its input
        try:
            process.wait(0.0 if stopping.is_alive() else EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILLED_SECONDS)
        self._left = process
        _forget_gateway()
        self._jvm, self.asleep_since = None, time.time()

    def look(self) -> None:
        """Kill the JVM if its Spark context was stopped, since it is unusable then.

        Not for polling: the call blocks while the JVM does not respond.
        """
        with suppress(Exception):  # a JVM that is gone is detected by its process
            stopped = self._root is not None and self._root.sparkContext._jsc.sc().isStopped()
            if stopped and not (self.ending or self._stopping):  # an ending JVM first deletes its own files
                self.kill("its context was stopped, as when its application is lost")

    def kill(self, why: str) -> None:
        """Kill an unusable JVM; it counts as lost, and the agent restarts.

        why  the reason, returned by `ended` from then on
        """
        process = self._jvm.proc if self._jvm is not None else None
        if process is not None and process.poll() is None:
            self._killed = why
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILLED_SECONDS)

    @contextmanager
    def job(self, session: Any, group: str) -> Iterator[JobGroup]:
        """Context of Spark jobs of this thread: one job group, with readable progress, that can be cancelled."""
        context = session.sparkContext
        context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            yield JobGroup(context, group)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)

    def stop(self) -> None:
        """Stop Spark; its JVM is killed if that takes more than `STOP_SECONDS`."""
        if self._root is not None:
            if not self._gone():
                self._stopping = True
                stopping = threading.Thread(target=self._stop, name="stop", daemon=True)
                stopping.start()
                stopping.join(STOP_SECONDS)
                if stopping.is_alive():
                    self.kill(f"it did not stop in {STOP_SECONDS:.0f} s")
            self._root = None
            self._stopping = False

    def _stop(self) -> None:
        with suppress(Exception):  # it is killed otherwise
            self._root.stop()

    def _started_root(self) -> Any:
        """The first session of its Spark, which is started if there is none. The caller holds `_starting`."""
        if self._root is None:
            if self._left is not None and self._left.poll() is None:
                raise RegionError(
                    f"the JVM {self._left.pid} of a Spark that was ended does not exit, and a second one beside it is not started",
                    hint=f"kill -9 {self._left.pid} on the region's host; without effect there, its disk does not answer",
                    code="E_JVM",
                )
            conf = _conf(self._settings, self.slots, in_bucket=self._in_bucket)
            self._jvm = self._jvm or _java(conf, self._lock_fd)
            self._root, self._left, self.asleep_since = _spark(conf, self._jvm), None, 0.0
            self.last_used = time.monotonic()
        return self._root


def _ended(code: int) -> str:
    """The meaning of a JVM's exit code (negative: the signal that ended it)."""
    if code in OUT_OF_MEMORY:
        return "its memory ran out"
    if code == -signal.SIGKILL:
        return "it was killed, as the kernel does where the machine's memory runs out"
    return f"it ended by signal {-code}" if code < 0 else f"it exited with {code}"


def _slots(master: str) -> int:
    """Concurrent tasks of a local master: one more than configured, so that a build leaves a slot for live feeds."""
    if not master.startswith("local"):
        return 0
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    cores = (os.cpu_count() or 1) if inside == "*" else int(inside or 1)
    return cores + 1


def _conf(settings: Settings, slots: int, *, in_bucket: bool = False) -> Any:
    from pyspark import SparkConf

    jars = sorted(str(jar) for jar in paths.jars_dir().glob("*.jar"))
    if not jars:
        raise RegionError(f"no Delta jars in {paths.jars_dir()}", hint="console setup", code="E_JARS")
    conf = SparkConf(loadDefaults=False)
    own = {**(_LOCAL if slots else {}), **settings.conf, **_FIXED}
    if in_bucket:
        jars += map(str, spark_conf.jars())  # behind Delta's, which the class archive covers
        own = {**spark_conf.settings(), **own}
    if slots:  # on the class path, which the class archive covers
        own["spark.driver.extraClassPath"] = ":".join(jars)
        own["spark.driver.extraJavaOptions"] += _archived(paths.archive_path())
    else:
        own["spark.jars"] = ",".join(jars)
    own["spark.master"] = f"local[{slots}]" if slots else settings.master
    own["spark.app.name"] = f"console {settings.region}"
    own.setdefault("spark.local.dir", tempfile.gettempdir())
    own.setdefault("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir()) / "console-spark-warehouse"))
    for name, value in own.items():
        conf.set(name, value)
    if slots:
        # otherwise Spark does not start on a host whose name does not resolve
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return conf


def _java(conf: Any, lock_fd: int) -> Any:
    """A gateway to Java: pyspark's own if there is one, since pyspark uses its first one, alive or dead."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    # The JVM inherits the lock, which stays held until both Python and JVM have exited.
    if lock_fd >= 0:
        os.set_inheritable(lock_fd, True)
    return launch_gateway(_open(conf), popen_kwargs={"pass_fds": (lock_fd,)} if lock_fd >= 0 else {})


def _close(root: Any, gateway: Any) -> None:
    """Stop Spark and close the connections to its JVM: a late call with an old session fails from then on."""
    with suppress(Exception):  # the JVM is ended by the end of its input, or killed
        root.stop()
    with suppress(Exception):
        gateway.shutdown()


def _forget_gateway() -> None:
    """pyspark keeps its first gateway, alive or dead, and would use it for the next Spark."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _spark(conf: Any, gateway: Any) -> Any:
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


def _open(conf: Any) -> Any:
    """The settings for the JVM's command line, without secrets, since every user of the host can read it."""
    from pyspark import SparkConf

    public = SparkConf(loadDefaults=False)
    for name, value in conf.getAll():
        if name.startswith("spark.driver.") or not (secret(name) or redacted(value) != value):
            public.set(name, value)
    return public


def _archived(archive: Path) -> str:
    return f" -XX:SharedArchiveFile={archive} {QUIET}" if archive.is_file() else ""


def load_settings(text: str) -> Settings:
    """Settings from the JSON of a console or of `agent.json`; unknown keys are refused.

    raises  RegionError
    """
    try:
        settings = codec.decode(Settings, codec.loads(text), exact=True)
    except DataError as error:
        raise RegionError(f"agent settings: {error}") from None
    if not 0 < settings.follow_share <= 1:
        hint = "start it from its project: console follow --region NAME"
        raise RegionError(
            f"agent settings: follow_share: expected more than 0, up to 1: {settings.follow_share:g}", hint=hint
        )
    return settings


def keep_settings(warehouse: Path, settings: Settings) -> None:
    """Store the settings in `agent.json`, which only the agent's user can read."""
    path = own_folder(warehouse) / "agent.json"
    fresh = path.with_suffix(".new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump({key: value for key, value in codec.encode(settings).items() if key != codec.TAG}, file)
    crash.point("before-settings")
    fresh.replace(path)
    crash.point("after-settings")
