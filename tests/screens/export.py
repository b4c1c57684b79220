"""Draws the README's picture: `python -m tests.screens.export [FILE]` (default `docs/console.svg`)."""

import asyncio
import sys
from pathlib import Path

from console.tui.app import ConsoleApp
from tests.screens.harness import settle
from tests.screens.moments import moment
from tests.screens.scripted import ScriptedCockpit

FILE = Path(__file__).parents[2] / "docs" / "console.svg"


async def picture(size: tuple[int, int] = (120, 32)) -> str:
    """A canary live, two regions of the next waves backfilling, as SVG."""
    app = ConsoleApp(ScriptedCockpit(*moment("running")), title="web", coach=True)
    async with app.run_test(size=size) as pilot:
        await pilot.press("j")
        await settle(pilot)
        return app.export_screenshot(title="console")


if __name__ == "__main__":
    path = Path(sys.argv[1]) if sys.argv[1:] else FILE
    path.write_text(asyncio.run(picture()), encoding="utf-8")
