"""Terminal output that never blocks the app, even if the terminal does not read or is gone.

Textual's own writer queues thirty writes and then blocks the event loop: no key, signal or exit is handled until the
terminal reads again.
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

MAX_QUEUED = 30  # queued writes for a terminal that does not read; later drawings are dropped, then redrawn
MODE_CHARACTERS = 64  # at most, of a write that sets a terminal mode and draws nothing
POLL_SECONDS = 1.0  # between two checks that the terminal is still there
FLUSH_SECONDS = 0.5  # for the rest of the queue when the screen closes
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class TerminalWriter(threading.Thread):
    """Writes to a terminal in the background; `put` never blocks and `close` only briefly."""

    def __init__(self, fd: int, encoding: str, request_redraw: Callable[[], None]) -> None:
        super().__init__(daemon=True, name="terminal")
        self._fd, self._encoding, self._request_redraw = fd, encoding, request_redraw
        self._queue: deque[str] = deque()
        self._changed = threading.Condition()
        self._dropped = self._closing = self._closed = False

    def put(self, text: str) -> None:
        with self._changed:
            if len(self._queue) >= MAX_QUEUED and len(text) > MODE_CHARACTERS and not self._closing:
                self._dropped = True
            else:
                self._queue.append(text)
                self._changed.notify()

    def discard_pending(self) -> None:
        """Drop what is not drawn yet; all that follows is kept, since it restores the terminal."""
        with self._changed:
            self._queue.clear()
            self._closing = True

    def close(self) -> None:
        """Write the rest of the queue for a moment; then discard output that the terminal has not read."""
        with self._changed:
            self._closed = True
            self._changed.notify()
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
                self._on_gone()
                return

    def _write(self, data: bytes) -> None:
        """Write all of it, even if another program made the terminal non-blocking."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                self._poll(select.POLLOUT, POLL_SECONDS)

    def _next(self) -> str | None:
        """The next text to write; None at the end, and if the terminal is gone."""
        while True:
            with self._changed:
                if self._queue:
                    return self._queue.popleft()
                if self._closed:
                    return None
                if self._dropped:
                    self._dropped = False
                    self._request_redraw()
                self._changed.wait(POLL_SECONDS)
                idle = not self._queue and not self._closed
            if idle and self._poll(0, 0) & _GONE:
                self._on_gone()
                return None

    def _poll(self, wanted: int, seconds: float) -> int:
        poll = select.poll()
        poll.register(self._fd, wanted)
        return next((events for _, events in poll.poll(seconds * 1000)), 0)

    def _on_gone(self) -> None:
        if not self._closing and threading.main_thread().is_alive():
            os.kill(os.getpid(), signal.SIGHUP)  # as the kernel signals a session whose terminal is gone


class TerminalDriver(LinuxDriver):
    """Textual's driver with a non-blocking writer."""

    _writer: TerminalWriter | None = None

    def write(self, data: str) -> None:
        if self._writer is None:
            out = sys.__stderr__
            assert out is not None
            self._writer = TerminalWriter(out.fileno(), out.encoding or "utf-8", self._redraw)
            self._writer.start()
        self._writer.put(data)

    def _redraw(self) -> None:
        app = self._app
        with suppress(RuntimeError):  # the app is ending
            self._loop.call_soon_threadsafe(lambda: app.refresh(layout=True, repaint=True))

    def stop_application_mode(self) -> None:
        if self._writer is not None:
            self._writer.discard_pending()
        super().stop_application_mode()

    def close(self) -> None:
        super().close()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
