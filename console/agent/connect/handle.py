"""The region's Spark behind Spark Connect: the live release is read and followed, everything else is refused by name.

A DataFrame of Spark Connect is analysed when it is run, not when it is made. So whatever opens a session here goes by
`agent/query_over` for rows under a name, and writes files by `agent/store/attempt_table`; what was not tried over a real server
gets no session (docs/decisions/0027).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from console.agent.connect import sessions
from console.agent.connect.jobs import tagged
from console.agent.connect.parameters import statement
from console.agent.settings import Settings
from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle
from console.errors import RegionError

_HINT = "spark: {master: …} in the region's file, with a Spark of the agent's host (docs/clusters.md#spark-connect)"


class ConnectHandle(SparkHandle):
    """Has no JVM: nothing is started, ended or lost with it, and it holds no lock."""

    def __init__(self, settings: Settings, warehouse: str) -> None:
        super().__init__(settings, -1, warehouse)
        self.on_cluster = True
        self.asleep_since = 0.0  # it has no Spark that could sleep

    @property
    def slots(self) -> int:
        """raises  RegionError E_CONNECT: the size of the server's Spark is not known to its clients"""
        self._refuse()

    def check_builds(self) -> None:
        self._refuse()

    def session(self, **conf: str) -> Any:
        """raises  RegionError E_CONNECT"""
        self._refuse()

    def passing_session(self) -> Any:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        return self.live_session()

    def live_session(self) -> Any:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        return sessions.open_session(self._settings.remote, self._settings.conf)

    def give_up(self, session: Any) -> None:
        with suppress(Exception):  # a server that does not answer forgets it by itself, after an hour
            session.stop()

    @contextmanager
    def query_session(self) -> Iterator[Any]:
        """raises  Unreachable if the server does not answer; RegionError E_CONNECT, E_EXTRA"""
        session = sessions.open_session(self._settings.remote, self._settings.conf)
        try:
            yield session
        finally:
            session.stop()  # the server would keep it, with its views, for an hour

    @contextmanager
    def job(self, session: Any, group: str) -> Iterator[RunningJob]:
        with tagged(session, group) as jobs:
            yield jobs

    def ask(self, session: Any, sql: str, args: Mapping[str, Any]) -> Any:
        return session.sql(statement(sql, args))

    def _refuse(self) -> NoReturn:
        raise RegionError(
            f"{self._settings.remote}: through Spark Connect the live release is only read and followed so far: nothing is"
            " built, checked or maintained",
            hint=_HINT,
            code="E_CONNECT",
        )
