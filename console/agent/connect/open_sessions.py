"""The sessions of a Spark Connect server that an agent has open.

One of a JVM is garbage once nobody uses it. A server keeps its own, with their views and caches, for an hour, and their clients
keep a connection each: one whose user is gone is ended here.
"""

import queue
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from console.agent.connect import sessions


class OpenSessions:
    """Those of one server. Its methods may be called from any thread."""

    def __init__(self, remote: str, conf: Mapping[str, str]) -> None:
        self._remote = remote
        self._conf = conf
        self._clients: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._left: queue.SimpleQueue[Any] = queue.SimpleQueue()  # clients of sessions that nobody has any more
        self._guard = threading.Lock()

    def open(self, conf: Mapping[str, str]) -> Any:
        """A new session, ended by whoever opens one after its last user has forgotten it.

        conf    settings over those of the region's file
        raises  Unreachable, RegionError as `sessions.open_session`
        """
        self._end_left()
        session = sessions.open_session(self._remote, {**self._conf, **conf})
        with self._guard:
            self._clients[session] = session.client
        weakref.finalize(session, self._left.put, session.client).atexit = False
        return session

    def break_off(self) -> None:
        """Close the connections of all sessions, from any thread: calls that wait for an answer end with an error."""
        with self._guard:
            clients = list(self._clients.values())
        for client in clients:
            with suppress(Exception):
                client.close()

    def _end_left(self) -> None:
        if not self._left.empty():
            threading.Thread(target=self._release, name="sessions", daemon=True).start()

    def _release(self) -> None:
        """In a thread of its own: a server that is gone is asked for some seconds."""
        while True:
            try:
                client = self._left.get_nowait()
            except queue.Empty:
                return
            with suppress(Exception):  # one that was stopped, or whose server is gone
                client.release_session()
            with suppress(Exception):
                client.close()
