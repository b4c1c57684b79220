"""Runs a line of shell on a real terminal or in a pipe, and keeps what was seen."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECONDS = 300.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


@dataclass(frozen=True, slots=True)
class Seen:
    """How a command ended, and all that it showed, in order."""

    code: int
    text: str

    @property
    def last(self) -> str:
        """The last line that is not empty, without colours."""
        lines = [line.strip() for line in ESCAPES.sub("", self.text).splitlines()]
        return next((line for line in reversed(lines) if line), "")


def on_terminal(
    line: str, folder: Path, env: Mapping[str, str], *, term: str, answer: str = "", until: str = ""
) -> Seen:
    """On a pseudo-terminal.

    answer  typed when the command asks for something to be typed
    until   Ctrl-C is typed once this was shown, for what runs until somebody ends it
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", line], cwd=folder, env={**env, "TERM": term}, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown, answered = b"", False
    deadline = time.monotonic() + SECONDS
    while True:
        if select.select([ours], [], [], 0.05)[0]:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # nobody holds the other end any more
                break
        elif process.poll() is not None:
            break
        text = shown.decode("utf-8", "replace")
        if answer and not answered and re.search(r"type \S+ to \w+: $", ESCAPES.sub("", text)):
            answered = True
            os.write(ours, f"{answer}\n".encode())
        if until and until in text:
            until = ""
            os.killpg(process.pid, signal.SIGINT)
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            text += f"\n(killed after {SECONDS:g} s)"
            break
    os.close(ours)
    return Seen(process.wait(), shown.decode("utf-8", "replace"))


def in_pipe(line: str, folder: Path, env: Mapping[str, str]) -> Seen:
    """With no terminal anywhere; what goes to stdout and stderr in the order in which it came."""
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
    )  # fmt: skip
    return Seen(done.returncode, done.stdout.decode("utf-8", "replace"))
