"""The region's Spark: started at the first data job, its JVM holding the region's lock beside the agent."""

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from console import paths, spark_versions
from console.agent import spark_process
from console.agent.agent_log import write_log
from console.agent.cluster import shared_disk, size
from console.agent.object_store.object_path import in_bucket
from console.agent.settings import Settings
from console.agent.spark_jobs import JobGroup, RunningJob
from console.errors import RegionError
from console.model.spark_master import spark_master

STOP_SECONDS = 60.0  # time for Spark to stop
EXIT_SECONDS = 20.0  # time for a JVM to exit whose Spark has stopped, after which it is killed
KILLED_SECONDS = 5.0  # time for a killed JVM to exit, after which it is abandoned
LIVE_POOL = "live"


class SparkHandle:
    """Starts Spark at the first use, gives each user a session of its own, and ends it while nobody uses it.

    on_cluster    its tasks run in executors, which may be lost while it goes on
    ending        the agent ends on purpose: a JVM that exits from now on is not lost
    last_used     monotonic: when a session was last asked for, or a use ended
    asleep_since  seconds since 1970, UTC: since when it has no Spark; 0 while it has one
    """

    def __init__(self, settings: Settings, lock_fd: int, warehouse: str = "") -> None:
        """warehouse: its path or URI; Spark is set up to reach it where it is in a bucket"""
        self._settings = settings
        self._warehouse = warehouse
        self._in_bucket = in_bucket(warehouse)
        self._conf: dict[str, str] = {}  # of the started Spark
        self._executors = size.RunningExecutors()
        self._on_this_host: tuple[size.Executor, ...] | None = None  # of these it is known
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
        self._local_slots = spark_process.slots_of(settings.master)
        self.on_cluster = not self._local_slots

    @property
    def started(self) -> bool:
        return self._root is not None

    @property
    def slots(self) -> int:
        """Tasks at once: of a local master as configured; of a cluster those of the executors that it has now."""
        if self._local_slots:
            return self._local_slots
        return size.slots(self._executors.of(self._root.sparkContext) if self._root is not None else (), self._conf)

    @property
    def build_tasks(self) -> int:
        """Tasks of a build at once."""
        return size.build_tasks(self.slots)

    @property
    def lost(self) -> bool:
        """Whether the JVM of a started, or starting, Spark has exited unexpectedly."""
        return not (self.ending or self._sleeping) and self._gone()

    @property
    def ended(self) -> str:
        """How its JVM exited, as text; "" while it runs, or if none was started."""
        process = self._jvm.proc if self._jvm is not None else None
        code = None if process is None else process.poll()
        return "" if code is None else self._killed or spark_process.exit_reason(code)

    @property
    def out_of_memory(self) -> bool:
        """Whether its JVM has exited because its memory ran out."""
        process = self._jvm.proc if self._jvm is not None else None
        return process is not None and process.poll() in spark_process.OUT_OF_MEMORY

    @property
    def rests(self) -> bool:
        """Whether a Spark was ended that nothing has needed since, and its JVM has exited."""
        return self._root is None and self._left is not None and self._left.poll() is not None

    def _gone(self) -> bool:
        return self.ended != ""

    def session(self, **conf: str) -> Any:
        """A new SparkSession, with its own views and settings, over the one SparkContext.

        It may be used for `follow.idle`, and within `in_use` as long as that lasts.

        conf    settings, with `__` for the dots in their names
        raises  RegionError E_JARS without Delta's jars, E_JVM while an ended JVM does not exit; any error of Spark
        """
        return self._new_session(conf, renews=True)

    def build_session(self) -> Any:
        """A new session for work that reads tables as a whole, and leaves a slot to live."""
        session = self.session()
        self.fit(session)
        return session

    @contextmanager
    def query_session(self) -> Iterator[Any]:
        """Context with a session of its own for one query of tables as they are."""
        yield self.session()

    def live_session(self) -> Any:
        """A session for the live feeds of one thread, whose jobs go first; `give_up` ends it."""
        session = self.session()
        self.put_first(session)
        return session

    def give_up(self, session: Any) -> None:
        """End a session of `live_session` or `passing_session`, as far as it holds anything: one of a JVM is garbage."""

    def ask(self, session: Any, sql: str, args: Mapping[str, Any]) -> Any:
        """The rows of a compiled query. session: of `query_session`;  args: name → value"""
        return session.sql(sql, args=dict(args))

    def fit(self, session: Any) -> None:
        """Give a build's session the settings for the size that its Spark has by now: executors come and go."""
        slots = self.slots
        chosen = size.build_settings(slots)
        if self.on_cluster:
            chosen |= size.session_settings(slots, self._conf)
        for name, value in chosen.items():
            session.conf.set(name, value)

    def put_first(self, session: Any) -> None:
        """From now on jobs of this thread get the next free slot of a cluster, before the waiting tasks of others.

        Beside the cap on a build's tasks: of two stages that need not wait for each other, each has that cap.
        """
        if self.on_cluster:
            session.sparkContext.setLocalProperty("spark.scheduler.pool", LIVE_POOL)

    def passing_session(self) -> Any:
        """A session whose use does not keep Spark from being ended later; for work that the sleeper waits for by itself."""
        return self._new_session({}, renews=False)

    def _new_session(self, conf: Mapping[str, str], *, renews: bool) -> Any:
        try:
            with self._starting:  # a JVM that is being ended gives no session, and one that has given one is not ended
                session = self._started_root().newSession()
                fitting = size.session_settings(self.slots, self._conf) if self.on_cluster else {}
                for name, value in (fitting | {name.replace("__", "."): value for name, value in conf.items()}).items():
                    session.conf.set(name, value)
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
        stopping = threading.Thread(target=spark_process.close, args=(root, jvm), name="stop", daemon=True)
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
        spark_process.forget_gateway()
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
    def job(self, session: Any, group: str) -> Iterator[RunningJob]:
        """Context of Spark jobs of this thread: one job group, with readable progress, that can be cancelled."""
        context = session.sparkContext
        self._check_hosts(context)
        context.setJobGroup(group, group, interruptOnCancel=True)
        try:
            yield JobGroup(context, group)
            self._check_hosts(context)  # one that came meanwhile has written elsewhere
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)

    def _check_hosts(self, context: Any) -> None:
        """raises  RegionError E_CLUSTER where tasks may have run on another host than that of the warehouse's disk"""
        if not self.on_cluster or self._in_bucket:
            return
        running = self._executors.of(context)
        if running is not self._on_this_host:
            shared_disk.check_hosts((each.host for each in running), self._warehouse)
            self._on_this_host = running

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
            if self.on_cluster and not self._in_bucket:
                shared_disk.refuse_elsewhere(spark_master(self._settings.master), self._warehouse)
            conf = spark_process.configuration(self._settings, self._local_slots, in_bucket=self._in_bucket)
            self._conf = dict(conf.getAll())
            self._jvm = self._jvm or spark_process.java_gateway(conf, self._lock_fd)
            self._root, self._left, self.asleep_since = spark_process.first_session(conf, self._jvm), None, 0.0
            self._executors = size.RunningExecutors()
            self.last_used = time.monotonic()
            _log_versions()
        return self._root


def _log_versions() -> None:
    here = spark_versions.installed(paths.jars_dir())
    tested = spark_versions.tested().get(here, "")
    level, text = ("info", f"tested by {tested}") if tested else ("warning", "this set of versions was not tested")
    write_log("spark", level, f"{here}: {text}")
