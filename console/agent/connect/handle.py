"""The region's Spark behind Spark Connect.

A DataFrame of Spark Connect is analysed when it is run, not when it is made. So whatever opens a session here goes by
`agent/query_over` for rows under a name, and writes files by `agent/store/attempt_table` (docs/decisions/0027, 0030).
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from console.agent.cluster import size as cluster_size
from console.agent.connect import size
from console.agent.connect.jobs import tagged
from console.agent.connect.open_sessions import OpenSessions
from console.agent.connect.parameters import statement
from console.agent.settings import Settings
from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle

SIZE_SECONDS = 60.0  # for which a server's size is taken to be the same


class ConnectHandle(SparkHandle):
    """Has no JVM: nothing is started, ended or lost with it, and it holds no lock."""

    def __init__(self, settings: Settings, warehouse: str) -> None:
        super().__init__(settings, -1, warehouse)
        self.on_cluster = True
        self.asleep_since = 0.0  # it has no Spark that could sleep
        self._open = OpenSessions(settings.remote, settings.conf)
        self._slots = cluster_size.UNKNOWN
        self._sized = -SIZE_SECONDS  # monotonic: when the server's size was last looked at

    @property
    def slots(self) -> int:
        """Tasks at once, as the last build's session has found them."""
        return self._slots

    def session(self, **conf: str) -> Any:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        return self._open.open({name.replace("__", "."): value for name, value in conf.items()})

    def fit(self, session: Any) -> None:
        """raises  whatever Spark raises"""
        if time.monotonic() - self._sized >= SIZE_SECONDS:
            self._slots, self._sized = size.slots(session), time.monotonic()
        for name, value in size.build_settings(self._slots, self._settings.conf).items():
            session.conf.set(name, value)

    def passing_session(self) -> Any:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        return self.session()

    def live_session(self) -> Any:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        return self.session()

    def give_up(self, session: Any) -> None:
        with suppress(Exception):  # a server that does not answer forgets it by itself, after an hour
            session.stop()

    @contextmanager
    def query_session(self) -> Iterator[Any]:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        session = self.session()
        try:
            yield session
        finally:
            session.stop()  # the server would keep it, with its views, for an hour

    def kill(self, why: str) -> None:
        """End every call to a server that does not answer: it is not ours to end. What it still runs ends in tables of attempts."""
        self._open.break_off()

    @contextmanager
    def job(self, session: Any, group: str) -> Iterator[RunningJob]:
        with tagged(session, group) as jobs:
            yield jobs

    def ask(self, session: Any, sql: str, args: Mapping[str, Any]) -> Any:
        return session.sql(statement(sql, args))
