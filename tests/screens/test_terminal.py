"""On a real pseudo-terminal: the output, and the state that is left behind however the console ends."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import FILES

pytestmark = pytest.mark.slow

# what Textual itself sends: SGR, cursor moves, modes and their queries, in-band resize, kitty keys, synchronised output,
# the pointer's shape
OWN = re.compile(r"\x1b\[[0-9;:?<>=]*[mHhlJKtuABCDnpqc$]|\x1b\[[?0-9;]*\$p|\x1b[78=>]|\x1b]22;[a-z-]*\x07")
STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Terminal:
    """A program on a terminal of 80 × 24."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._slave = slave
        self.modes = termios.tcgetattr(slave)
        env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONUTF8": "1"}
        command = [sys.executable, "-m", module, *arguments]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        self.bytes = b""

    def until(self, done: Callable[[], bool], seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, self.text[-2000:]
            if select.select([self._master], [], [], 0.05)[0]:
                self.bytes += os.read(self._master, 1 << 16)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    @property
    def text(self) -> str:
        return self.bytes.decode("utf-8", "surrogateescape")

    def restored(self) -> bool:
        return termios.tcgetattr(self._slave) == self.modes and self.text.count("\x1b[?1049l") >= 1

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_hostile_text_steers_no_terminal_and_a_signal_leaves_it_as_it_was(number: signal.Signals, code: int) -> None:
    terminal = Terminal("tests.screens.hostile")
    try:
        terminal.until(lambda: "all keys" in terminal.text or "release" in terminal.text.lower())
        for keys, shown in (
            ("\r", "discard"),
            ("l", "[@click=app.quit]"),
            ("w", "confirmed on Spark"),
            ("\x1b[F", "search again"),
            ("P", "Cancel"),
            ("\r", "witness"),
            ("?", "esc closes"),
        ):
            before = len(terminal.bytes)
            terminal.type(keys)
            terminal.until(lambda at=before, want=shown: want in terminal.bytes[at:].decode("utf-8", "replace"))
        terminal.process.send_signal(number)
        terminal.until(lambda: terminal.process.poll() is not None)
        terminal.until(terminal.restored, 3)
        assert terminal.process.returncode == code
        left = OWN.sub("", terminal.text)
        strange = {char for char in left if unicodedata.category(char) in STEERING and char not in "\r\n"}
        assert not strange, re.findall(r".{20}[\x1b\x07\x80-\x9f\u202e\u200b].{20}", left)
        assert "\\x1b]52;c;aGVsbG8=\\x07" in left
        assert "[/]" in left
    finally:
        terminal.close()


def test_the_line_with_the_next_keys_is_there_for_everybody_and_leaving_leaves_the_terminal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for region in ("us", "eu"):
        (tmp_path / "w" / region).mkdir(parents=True)
    terminal = Terminal("console.main", "--project", str(tmp_path))
    try:
        terminal.until(lambda: "see why" in terminal.text, 60)
        terminal.type("q")
        terminal.until(lambda: terminal.process.poll() is not None)
        terminal.until(terminal.restored, 3)
        assert terminal.process.returncode == 0
    finally:
        terminal.close()
