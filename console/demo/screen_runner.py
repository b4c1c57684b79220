"""The screen that `console demo` shows, as the demo sees it."""

from typing import Protocol

from console.runner.view import Cockpit


class ScreenRunner(Protocol):
    """Opens the terminal screen on a cockpit, and closes the cockpit when the operator quits. Returns the exit code."""

    def __call__(self, cockpit: Cockpit, *, title: str = "", coach: bool = False, readonly: bool = False) -> int: ...
