"""The region's lock: one agent per warehouse, held as long as the agent or its JVM lives (P4)."""

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from console.errors import Conflict


class RegionLock:
    """A `flock` on `_console/agent.lock` whose descriptor the JVM inherits.

    Delta's local log store does not arbitrate between processes, and a JVM survives its killed Python process for a
    moment: a lock of the Python process alone would be free while the old JVM can still commit.
    """

    def __init__(self, warehouse: Path) -> None:
        self.path = warehouse / "_console" / "agent.lock"
        self.fd = -1
        self.lost: Conflict | None = None  # never: the kernel keeps it

    def leave(self) -> None:
        """The kernel releases it with the last process; only an exec of this one must not keep it."""
        if self.fd >= 0:
            os.set_inheritable(self.fd, False)

    def take(self, facts: dict[str, Any], timeout: float = 0.0) -> None:
        """Take the lock, waiting up to `timeout` seconds for a dying holder.

        facts   stored in the lock file beside the holder's pid, host and start time
        raises  Conflict E_LOCK naming the holder
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(fd)
                    raise self._conflict() from None
                time.sleep(0.1)
        self.fd = fd
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), **facts}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(holder).encode(), 0)

    def _conflict(self) -> Conflict:
        owner = holder(self.path) or {}
        since = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(float(owner.get("since", 0))))
        return Conflict(
            f"{self.path.parent.parent} is held by another agent: pid {owner.get('pid', '?')} on {owner.get('host', '?')} since {since}",
            hint="console attaches to it by itself; to end a stuck one: `console follow --stop --region …`",
            code="E_LOCK",
        )


def holder(path: Path) -> dict[str, Any] | None:
    """The facts that the last holder wrote to the lock file; only the lock itself shows whether it is still alive."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None
