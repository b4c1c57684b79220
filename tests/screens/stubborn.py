"""The real program over regions that keep a thread busy for an hour and never close their links."""

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

from console import main as program
from tests.screens import scripted as s


class Stubborn(s.ScriptedCockpit):
    async def refresh(self, regions: Sequence[str] = ()) -> None:
        await asyncio.to_thread(time.sleep, 3600)

    async def close(self) -> None:
        await asyncio.Event().wait()


class Cli:
    """Stands for the command line: opens the screen at once."""

    def main(self, *, obj: Any, **_: object) -> None:
        sys.exit(obj.wiring.screen(Stubborn(s.RegionView(region=s.EU)), title="web"))


if __name__ == "__main__":
    vars(program)["cli"] = Cli()
    program.main()
