"""The demo's own processes: started in the background, remembered by pid and birth, ended without hitting another's."""

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
    """When that process was born; "" if it lives no more, and a child of ours that ended is not kept for that."""
    with suppress(ChildProcessError, OSError):
        os.waitpid(pid, os.WNOHANG)
    return console.process.birth(pid)


class Processes:
    """Those below one directory: `<home>/processes/<name>.json` each, what they say in `<home>/logs/<name>.log`."""

    def __init__(self, home: Path) -> None:
        self._notes, self._logs = home / "processes", home / "logs"

    def start(self, name: str, *arguments: str) -> None:
        """Start `python ARGUMENTS` unless one of that name lives."""
        if self.alive(name):
            return
        self._notes.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        with (self._logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._note(name).write_text(json.dumps({"pid": process.pid, "birth": birth(process.pid)}))
        process.returncode = 0  # it outlives us, and that is no leak to warn of

    def note_self(self, name: str) -> None:
        """This very process is one of them, until `forget_self`."""
        self._notes.mkdir(parents=True, exist_ok=True)
        self._note(name).write_text(json.dumps({"pid": os.getpid(), "birth": birth(os.getpid())}))

    def forget_self(self, name: str) -> None:
        if self.alive(name) == os.getpid():
            self._note(name).unlink(missing_ok=True)

    def alive(self, name: str) -> int:
        """Its pid, or 0."""
        try:
            note = json.loads(self._note(name).read_text())
            pid = int(note["pid"])
            return pid if note["birth"] and birth(pid) == note["birth"] else 0
        except (OSError, ValueError, KeyError):
            return 0

    def stop(self, name: str, seconds: float = TERM_SECONDS) -> bool:
        """Ask it to end, and end it if it has not after so long. True if it lived."""
        pid = self.alive(name)
        if pid:
            end(pid, seconds)
        self._note(name).unlink(missing_ok=True)
        return bool(pid)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(note.stem for note in self._notes.glob("*.json")))

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _note(self, name: str) -> Path:
        return self._notes / f"{name}.json"


def end(pid: int, seconds: float = TERM_SECONDS) -> None:
    """SIGTERM, and after so long SIGKILL, to that very process."""
    born = birth(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + seconds
        while born and birth(pid) == born:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
