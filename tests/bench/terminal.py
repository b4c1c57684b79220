"""A process in a terminal of its own, which reads everything drawn."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def in_terminal(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, pass_fds: Sequence[int] = (), rows: int = 60, columns: int = 200
) -> Iterator[tuple[subprocess.Popen[bytes], list[bytes]]]:  # fmt: skip
    """The process, which is killed at the end, and what it has drawn so far."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        words, cwd=folder, env={**environment, "TERM": "xterm-256color"}, pass_fds=pass_fds,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    drawn: list[bytes] = []

    def read() -> None:
        with suppress(OSError):
            while data := os.read(ours, 65536):
                drawn.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield process, drawn
    finally:
        process.kill()
        process.wait()
        reader.join()
        os.close(ours)
