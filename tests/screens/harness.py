"""The real app over a scripted cockpit in a test, without a terminal, at a fixed time."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from console.runner.view import Cockpit
from console.runner.words import CommandWords
from console.tui.app import ConsoleApp
from console.tui.dialogs.dialog import Dialog
from console.tui.fleet.memory import ScreenMemory
from console.tui.screens.home import HomeScreen


@asynccontextmanager
async def running_app(
    cockpit: Cockpit,
    *,
    size: tuple[int, int] = (80, 24),
    coach: bool = True,
    readonly: bool = False,
    repaint: float = 0.02,
    words: CommandWords | None = None,
    memory: Path | None = None,
) -> AsyncIterator[tuple[ConsoleApp, Pilot[int]]]:
    """The app, and the pilot that types."""
    app = ConsoleApp(
        cockpit,
        title="web",
        coach=coach,
        readonly=readonly,
        repaint_seconds=repaint,
        words=words,
        memory=ScreenMemory(memory),
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


async def settle(pilot: Pilot[int]) -> None:
    """Wait until all changes are on the screen, and the panes have followed the cursor."""
    await pilot.pause(0.04)
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    async with asyncio.timeout(60):
        while not app.repaints.settled or any(
            isinstance(screen, HomeScreen) and screen._following for screen in app.screen_stack
        ):
            await pilot.pause(0.02)
    await pilot.pause()


def normal(svg: str) -> str:
    """The picture without the ids that Rich derives from its content."""
    return re.sub(r"terminal-\d+-", "terminal-", svg)


def screen_text(app: ConsoleApp) -> str:
    """The text on the screen, toasts included."""
    width, height = app.size
    lines = app.screen._compositor.render_strips(size=app.size)
    assert (len(lines), width > 0) == (height, True)
    return "\n".join(line.text for line in lines)


def toast_text(app: ConsoleApp) -> str:
    """The text of the toasts, unwrapped."""
    return "\n".join(notification.message for notification in app._notifications)


def dialog_title(app: ConsoleApp) -> str:
    """The title of the open dialog, "" if none is open."""
    return str(app.screen._content.title) if isinstance(app.screen, Dialog) else ""
