"""Whatever ends the screen ends its process: within five seconds, whatever its threads do and its terminal does not.

Five seconds of a machine that is not busy: where others wait for its processors too, as many times longer.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SECONDS = 5.0
SETTLED_SECONDS, IDLE_SHARE = 2.0, 0.1  # it is at rest if it takes less of a processor than that for so long
NAMING = """
import faulthandler, os, signal
faulthandler.register(signal.SIGUSR1, file=open(os.environ["CONSOLE_THREADS"], "w"), all_threads=True)
"""


class Screen:
    """A module with a screen, on a terminal of 200 × 60 that somebody reads, or nobody."""

    def __init__(self, module: str, folder: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        self._threads = folder / "threads"
        (folder / "sitecustomize.py").write_text(NAMING)
        more = {"TERM": "xterm-256color", "PYTHONPATH": str(folder), "CONSOLE_THREADS": str(self._threads)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **more},
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.deaf = False

    def read(self, seconds: float) -> bytes:
        try:
            return os.read(self.master, 1 << 16) if select.select([self.master], [], [], seconds)[0] else b""
        except OSError:  # the other end is closed
            time.sleep(seconds)
            return b""

    def until(self, word: bytes) -> None:
        seen, deadline = b"", time.monotonic() + 60
        while word not in seen:
            assert time.monotonic() < deadline, seen[-2000:]
            seen += self.read(0.1)

    def ends(self) -> int:
        """Its exit code, five seconds from now at the latest; else its threads are named."""
        seconds = SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            if self.deaf:
                time.sleep(0.05)
            else:
                self.read(0.05)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(0.5)
            pytest.fail(f"alive after {seconds:.0f} s, its threads:\n{self._threads.read_text()}")
        return self.process.returncode

    def settle(self) -> None:
        """Until it has handled what it was sent: a busy machine lets it do so late."""
        deadline, before = time.monotonic() + 60, -1.0
        while (spent := self.processor_seconds()) - before > IDLE_SHARE * SETTLED_SECONDS:
            assert time.monotonic() < deadline, "it works on, whatever it is sent"
            before = spent
            time.sleep(SETTLED_SECONDS)

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.master >= 0:
            os.close(self.master)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    """Its threads work for an hour, and its links do not let go."""
    made = Screen("tests.screens.stubborn", tmp_path)
    try:
        made.until(b" keys ")
        yield made
    finally:
        made.close()


def test_q_ends_the_process(screen: Screen) -> None:
    os.write(screen.master, b"q")
    assert screen.ends() == 0


def test_a_signal_ends_the_process(screen: Screen) -> None:
    screen.process.send_signal(signal.SIGTERM)
    assert screen.ends() == 143


def fill(screen: Screen) -> None:
    """Have more drawn than the terminal and Textual's own queue hold, and read nothing."""
    for _ in range(40):
        for key in (b"?", b"\x1b"):
            os.write(screen.master, key)
            time.sleep(0.02)
    screen.settle()  # also since a key right after an escape is one with alt


def test_a_terminal_that_does_not_read_keeps_no_process(screen: Screen) -> None:
    screen.deaf = True
    fill(screen)
    os.write(screen.master, b"q")
    assert screen.ends() == 0


def test_a_terminal_that_is_gone_ends_the_process(screen: Screen) -> None:
    os.close(screen.master)
    screen.master, screen.deaf = -1, True
    assert screen.ends() == 129


def test_a_terminal_that_reads_again_shows_the_current_state(tmp_path: Path) -> None:
    screen = Screen("tests.screens.hostile", tmp_path)
    try:
        screen.until(b" promote ")
        fill(screen)
        os.write(screen.master, b"?")
        time.sleep(1)
        screen.until(b"esc closes")  # of the help that is open now, drawn anew
        while screen.read(0.5):
            pass
        os.write(screen.master, b"\x1b")
        screen.until(b" promote ")
        os.write(screen.master, b"q")
        assert screen.ends() == 0
    finally:
        screen.close()
