"""The terminal as the screens write to it: one that does not read, or is gone, keeps nobody waiting.

Textual's own writer holds thirty writes and then lets the event loop wait for the terminal: no key, no signal and no end
is heard until it reads again.
"""

import os
import select
import signal
import sys
import termios
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from textual.drivers.linux_driver import LinuxDriver

MAX_QUEUED = (
    30  # writes held for a terminal that does not read; what is drawn later is dropped, and drawn anew when it does
)
MODE_CHARACTERS = 64  # characters: less sets a mode of the terminal and draws nothing
POLL_SECONDS = 1.0  # between two looks whether the terminal is still there
FLUSH_SECONDS = 0.5  # for what is left to be written when the screen ends
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class TerminalWriter(threading.Thread):
    """Writes to a terminal in the background. `put` and `end` never wait for it.

    hurry  drop what was not drawn yet; all that follows is kept: it gives the terminal back
    """

    def __init__(self, fd: int, encoding: str, again: Callable[[], None]) -> None:
        super().__init__(daemon=True, name="terminal")
        self._fd, self._encoding, self._again = fd, encoding, again
        self._held: deque[str] = deque()
        self._news = threading.Condition()
        self._dropped = self._ending = self._over = False

    def put(self, text: str) -> None:
        with self._news:
            if len(self._held) >= MAX_QUEUED and len(text) > MODE_CHARACTERS and not self._ending:
                self._dropped = True
            else:
                self._held.append(text)
                self._news.notify()

    def hurry(self) -> None:
        with self._news:
            self._held.clear()
            self._ending = True

    def end(self) -> None:
        """Write what is held, for a moment; what the terminal was sent and did not read is then thrown away."""
        with self._news:
            self._over = True
            self._news.notify()
        self.join(FLUSH_SECONDS)
        if self.is_alive():
            with suppress(OSError, termios.error):
                termios.tcflush(self._fd, termios.TCOFLUSH)
            self.join(FLUSH_SECONDS)

    def run(self) -> None:
        while (text := self._next()) is not None:
            try:
                self._write(text.encode(self._encoding, "backslashreplace"))
            except OSError:
                self._gone()
                return

    def _write(self, data: bytes) -> None:
        """All of it, also to a terminal that another program made non-blocking."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                self._poll(select.POLLOUT, POLL_SECONDS)

    def _next(self) -> str | None:
        """What is to be written next; None at the end, and where the terminal is gone."""
        while True:
            with self._news:
                if self._held:
                    return self._held.popleft()
                if self._over:
                    return None
                if self._dropped:
                    self._dropped = False
                    self._again()
                self._news.wait(POLL_SECONDS)
                idle = not self._held and not self._over
            if idle and self._poll(0, 0) & _GONE:
                self._gone()
                return None

    def _poll(self, wanted: int, seconds: float) -> int:
        poll = select.poll()
        poll.register(self._fd, wanted)
        return next((found for _, found in poll.poll(seconds * 1000)), 0)

    def _gone(self) -> None:
        if not self._ending and threading.main_thread().is_alive():
            os.kill(os.getpid(), signal.SIGHUP)  # as the kernel tells a session that the terminal controls


class TerminalDriver(LinuxDriver):
    """Textual's driver, with a writer of our own."""

    _writer: TerminalWriter | None = None

    def write(self, data: str) -> None:
        if self._writer is None:
            out = sys.__stderr__
            assert out is not None
            self._writer = TerminalWriter(out.fileno(), out.encoding or "utf-8", self._draw_again)
            self._writer.start()
        self._writer.put(data)

    def _draw_again(self) -> None:
        app = self._app
        with suppress(RuntimeError):  # the app is ending
            self._loop.call_soon_threadsafe(lambda: app.refresh(layout=True, repaint=True))

    def stop_application_mode(self) -> None:
        if self._writer is not None:
            self._writer.hurry()
        super().stop_application_mode()

    def close(self) -> None:
        super().close()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.end()
