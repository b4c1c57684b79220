"""A Spark session of the live feeds, opened only when it is needed."""

import time
from typing import Any

from console.agent.spark_session import SparkHandle


class SessionOnDemand:
    """A session that is opened when it is first needed, and again after it was dropped.

    last_used  monotonic: when it was last asked for; 0 for never
    """

    def __init__(self, spark: SparkHandle) -> None:
        self._spark = spark
        self._session: Any = None
        self.last_used = 0.0

    @property
    def is_open(self) -> bool:
        return self._session is not None

    def get(self) -> Any:
        self.last_used = time.monotonic()
        if self._session is None:
            self._session = self._spark.live_session()
        return self._session

    def drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._spark.give_up(session)


def opened(session: Any) -> Any:
    """A session, opened if it is one on demand."""
    return session.get() if isinstance(session, SessionOnDemand) else session
