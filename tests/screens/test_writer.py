"""The writer of a terminal: every write arrives complete, however the terminal reads."""

import os
import threading

import pytest

from console.tui.terminal.driver import TerminalWriter

pytestmark = pytest.mark.slow

PICTURE = "━╌" * 100_000 + "\x1b[0m"


def test_a_terminal_that_another_program_made_nonblocking_gets_every_letter() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    writer = TerminalWriter(writing, "utf-8", lambda: None)
    taken = bytearray()

    def take() -> None:
        while piece := os.read(reading, 4099):  # no multiple of a letter's bytes
            taken.extend(piece)

    reader = threading.Thread(target=take)
    reader.start()
    writer.put(PICTURE)
    writer.start()
    writer.close()
    os.close(writing)
    reader.join()
    os.close(reading)
    assert taken.decode("utf-8", "replace") == PICTURE
