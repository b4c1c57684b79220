"""The demo's background processes, identified by pid and start time, so that no other process is ever ended."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import console.process

TERM_SECONDS = 15.0


def birth(pid: int) -> str:
    """Start time of the process; "" if it has ended. An ended child process is reaped first."""
    with suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)
    return console.process.birth(pid)


class Processes:
    """Processes of one directory: a pid file `<home>/processes/<name>.json` each, output in `<home>/logs/<name>.log`."""

    def __init__(self, home: Path) -> None:
        self._pid_files, self._logs = home / "processes", home / "logs"

    def start(self, name: str, *arguments: str) -> None:
        """Start `python ARGUMENTS` unless a process of that name is running."""
        if self.alive(name):
            return
        self._pid_files.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        with (self._logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._pid_file(name).write_text(json.dumps({"pid": process.pid, "birth": birth(process.pid)}))
        process.returncode = 0  # it is meant to outlive this process: no ResourceWarning

    def register_self(self, name: str) -> None:
        """Register the current process under that name, until `unregister_self`."""
        self._pid_files.mkdir(parents=True, exist_ok=True)
        self._pid_file(name).write_text(json.dumps({"pid": os.getpid(), "birth": birth(os.getpid())}))

    def unregister_self(self, name: str) -> None:
        if self.alive(name) == os.getpid():
            self._pid_file(name).unlink(missing_ok=True)

    def alive(self, name: str) -> int:
        """Pid of that process, or 0 if it is not running."""
        try:
            entry = json.loads(self._pid_file(name).read_text())
            pid = int(entry["pid"])
            return pid if entry["birth"] and birth(pid) == entry["birth"] else 0
        except (OSError, ValueError, KeyError):
            return 0

    def stop(self, name: str, seconds: float = TERM_SECONDS) -> bool:
        """Ask it to end, and kill it after this many seconds. True if it was running."""
        pid = self.alive(name)
        if pid:
            end(pid, seconds)
        self._pid_file(name).unlink(missing_ok=True)
        return bool(pid)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self._pid_files.glob("*.json")))

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _pid_file(self, name: str) -> Path:
        return self._pid_files / f"{name}.json"


def end(pid: int, seconds: float = TERM_SECONDS) -> None:
    """SIGTERM, and after this many seconds SIGKILL; never to a later process with the same pid."""
    born = birth(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + seconds
        while born and birth(pid) == born:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
