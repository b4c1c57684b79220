"""The agent's own log, on its standard error."""

import sys
import time
from contextlib import suppress

from console.agent.failure import cause, message
from console.errors import ConsoleError


def write_log(who: str, level: str, text: str) -> None:
    """One line of the agent's log."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with suppress(OSError, ValueError):  # its disk is full or closed: a failing log stops nothing
        print(f"{at} {level} {who}: {text}", file=sys.stderr, flush=True)


def describe(error: Exception) -> str:
    """One line for the log, without secrets."""
    return message(error) if isinstance(error, ConsoleError) else f"{type(error).__name__}: {cause(error)}"
