"""Named points at which a test may have this very process killed. Off unless CONSOLE_CRASH_DIR is set.

A file named like a point in that directory arms it, once: it is removed and the process gets SIGKILL, so that
nothing can be tidied up on the way down. Where there is a folder `fired` it is moved there, with the process's id.
"""

import os
import signal
from pathlib import Path

_DIRECTORY = os.environ.get("CONSOLE_CRASH_DIR", "")


def point(name: str) -> None:
    """Die here if a test armed this point."""
    if not _DIRECTORY:
        return
    armed = Path(_DIRECTORY) / name
    fired = armed.parent / "fired"
    try:
        if fired.is_dir():
            armed.rename(fired / f"{name}.{os.getpid()}")
        else:
            armed.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
