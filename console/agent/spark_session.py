"""The region's Spark: started on the first data job, tuned for the size at hand, holding the region's lock."""

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console import crash, paths
from console.errors import DataError, RegionError
from console.model import codec
from console.text import redacted, secret

# Set by us and not by the inventory: correctness depends on them (docs/design.md, rules 3, 7; docs/security.md).
_FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    # Parameters are bound in the analysed plan: Spark's newer way is in its parser, and Delta's parser passes it over.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}
GC = "-XX:+UseParallelGC -Xshare:auto"
# For a JVM that lives for seconds: compiling well costs more than it saves. The first compiler alone would get a cache of
# 48 MB, too small for Spark: it then forgets what it compiled and begins again.
BRIEF = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto"
OUT_OF_MEMORY = (3, 52)  # the JVM's exit where a region's flags have it end for that, and Spark's (SparkExitCode.OOM)
STOP_SECONDS = 60.0  # that Spark may take to stop
KILLED_SECONDS = 5.0  # that a killed JVM may take to be gone, before it is not waited for any longer
QUIET = "-Xlog:disable -Xlog:all=error:stderr"  # an archive that does not fit is no news
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
    "spark.driver.extraJavaOptions": GC,
    "spark.log.level": "ERROR",
}


@dataclass(slots=True)
class Settings:
    """What the agent was started with; kept in `_console/agent.json`, so that it restarts without project files."""

    region: str = ""
    master: str = "local[2]"
    conf: dict[str, str] = field(default_factory=dict)
    tick_seconds: float = 1.0
    rollback_window_hours: float = 72.0
    keep_failed_hours: float = 72.0


class SparkHandle:
    """Starts Spark when first asked and hands out one session a thread of work."""

    def __init__(self, settings: Settings, lock_fd: int) -> None:
        self._settings = settings
        self._lock_fd = lock_fd
        self._jvm: Any = None  # the process's one gateway to Java, also where no Spark came up in it
        self._root: Any = None
        self._starting = threading.Lock()
        self._killed = ""  # why we ended the JVM
        self.ending = False  # the agent is being ended on purpose, and whoever does it may end the JVM beside it
        self.slots = _slots(settings.master)

    @property
    def started(self) -> bool:
        return self._root is not None

    @property
    def lost(self) -> bool:
        """Spark was started, or was being started, and its JVM is gone, which nobody asked for."""
        return not self.ending and self._gone()

    @property
    def ended(self) -> str:
        """How its JVM ended, in words; "" while it lives, or where none was started."""
        process = self._jvm.proc if self._jvm is not None else None
        code = None if process is None else process.poll()
        return "" if code is None else self._killed or _ended(code)

    def _gone(self) -> bool:
        return self.ended != ""

    def session(self, **conf: str) -> Any:
        """A SparkSession of its own (temp views and settings apart) over the one SparkContext."""
        try:
            session = self._start().newSession()
            for name, value in conf.items():
                session.conf.set(name.replace("__", "."), value)
        except Exception:
            self.look()
            raise
        return session

    def look(self) -> None:
        """Ask the JVM whether its context still stands, and end a JVM in which it does not: nothing in it works again.

        Never on a poll: a JVM that does not answer holds up whoever asks it.
        """
        with suppress(Exception):  # one that is gone is told by its process
            stopped = self._root is not None and self._root.sparkContext._jsc.sc().isStopped()
            if stopped and not self.ending:  # where we end, it may be ending too, and tidies its own files away first
                self.kill("its context was stopped, as where its application is lost")

    def kill(self, why: str) -> None:
        """End a JVM that is of no more use; it is then as lost as any other, and the agent begins anew.

        why  in words, which tell from then on how it ended
        """
        process = self._jvm.proc if self._jvm is not None else None
        if process is not None and process.poll() is None:
            self._killed = why
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILLED_SECONDS)

    @contextmanager
    def job(self, session: Any, group: str) -> Iterator["JobGroup"]:
        """Run Spark jobs of this thread under a name, so that their progress can be read and they can be cancelled."""
        context = session.sparkContext
        context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            yield JobGroup(context, group)
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)

    def stop(self) -> None:
        if self._root is not None:
            if not self._gone():
                stopping = threading.Thread(target=self._stop, name="stop", daemon=True)
                stopping.start()
                stopping.join(STOP_SECONDS)
                if stopping.is_alive():
                    self.kill(f"it did not stop in {STOP_SECONDS:.0f} s")
            self._root = None

    def _stop(self) -> None:
        with suppress(Exception):  # it goes in any case
            self._root.stop()

    def _start(self) -> Any:
        with self._starting:
            if self._root is None:
                conf = _conf(self._settings, self.slots)
                self._jvm = self._jvm or _java(conf, self._lock_fd)
                self._root = _spark(conf, self._jvm)
            return self._root


class JobGroup:
    """Progress of the jobs under one name."""

    def __init__(self, context: Any, group: str) -> None:
        self._context = context
        self._group = group

    def fraction(self) -> float:
        """Finished tasks ÷ known tasks of all stages so far; 0 before the first."""
        tracker = self._context.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                found = tracker.getStageInfo(stage)
                if found:
                    done, total = done + found.numCompletedTasks, total + found.numTasks
        return done / total if total else 0.0

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)


def _ended(code: int) -> str:
    """What a JVM's exit code says (negative: the signal that ended it)."""
    if code in OUT_OF_MEMORY:
        return "its memory ran out"
    if code == -signal.SIGKILL:
        return "it was killed, as the kernel does where the machine's memory runs out"
    return f"it ended by signal {-code}" if code < 0 else f"it exited with {code}"


def _slots(master: str) -> int:
    """Tasks at once: locally one more than asked, so that a build can leave a slot to live (rule 10)."""
    if not master.startswith("local"):
        return 0
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    cores = (os.cpu_count() or 1) if inside == "*" else int(inside or 1)
    return cores + 1


def _conf(settings: Settings, slots: int) -> Any:
    from pyspark import SparkConf

    jars = sorted(str(jar) for jar in paths.jars_dir().glob("*.jar"))
    if not jars:
        raise RegionError(f"no Delta jars in {paths.jars_dir()}", hint="console setup", code="E_JARS")
    conf = SparkConf(loadDefaults=False)
    own = {**(_LOCAL if slots else {}), **settings.conf, **_FIXED}
    if slots:  # on the class path itself, which a class archive covers
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
        # else a host whose own name does not resolve starts no Spark
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return conf


def _java(conf: Any, lock_fd: int) -> Any:
    """A gateway to Java: pyspark's own where it has one, for it keeps its first, alive or dead, and heeds no other."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    # py4j's JVM inherits the lock: it stays held until Python *and* JVM are gone.
    if lock_fd >= 0:
        os.set_inheritable(lock_fd, True)
    return launch_gateway(_open(conf), popen_kwargs={"pass_fds": (lock_fd,)} if lock_fd >= 0 else {})


def _spark(conf: Any, gateway: Any) -> Any:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession(SparkContext(gateway=gateway, conf=conf))


def _open(conf: Any) -> Any:
    """What may stand on the JVM's command line, which everyone on this machine can read; its context gets the rest."""
    from pyspark import SparkConf

    told = SparkConf(loadDefaults=False)
    for name, value in conf.getAll():
        if name.startswith("spark.driver.") or not (secret(name) or redacted(value) != value):
            told.set(name, value)
    return told


def _archived(archive: Path) -> str:
    return f" -XX:SharedArchiveFile={archive} {QUIET}" if archive.is_file() else ""


def load_settings(text: str) -> Settings:
    """Settings from the JSON a console hands over or `agent.json` kept; unknown keys are refused.

    raises  RegionError
    """
    try:
        return codec.decode(Settings, codec.loads(text), exact=True)
    except DataError as error:
        raise RegionError(f"agent settings: {error}") from None


def keep_settings(warehouse: Path, settings: Mapping[str, Any]) -> None:
    path = warehouse / "_console" / "agent.json"
    fresh = path.with_suffix(".new")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w") as file:
        json.dump(settings, file)
    crash.point("before-settings")
    fresh.replace(path)
    crash.point("after-settings")
