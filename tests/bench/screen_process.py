"""The screen in a process and a terminal of its own: `python screen_process.py WHAT VIEWS`, started by `test_screen.py`.

Prints one JSON object on the descriptor named by `OUT`: processor seconds of this process, so that a busy machine tells
nearly the same.

    empty  a Textual app without a widget: until its first picture
    paint  the cockpit over the pickled views: until its first picture
    rest   the same, whose views each change their lag once a second: over so many seconds at rest
"""

import asyncio
import importlib
import json
import os
import pickle
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from textual.app import App

WARM_SECONDS, REST_SECONDS = 4.0, 20.0


class RestingCockpit:
    """Live regions of which nothing is heard but their lag, once a second each, as their agents send it."""

    player = None

    def __init__(self, views: Mapping[str, Any]) -> None:
        self._views = dict(views)
        self.follow: Awaitable[None] | None = None

    @property
    def views(self) -> Mapping[str, Any]:
        return MappingProxyType(self._views)

    async def changes(self) -> AsyncIterator[Any]:
        beat = 0
        while True:
            for name in self._views:
                await asyncio.sleep(1 / len(self._views))
                beat += 1
                view = self._views[name]
                status = replace(view.status, lag_seconds=0.4 + beat % 10 / 10, lag_rows=beat % 50, lag_commits=1)
                self._views[name] = replace(view, status=status)
                yield self._views[name]

    def now(self) -> float:
        return time.time()

    async def refresh(self, regions: object = ()) -> None:
        if self.follow:
            await self.follow

    async def close(self) -> None:
        return None


PAINT = "_display"  # called by Textual with each picture


def finish(figures: dict[str, float]) -> None:
    os.write(int(os.environ["OUT"]), json.dumps(figures).encode())
    os._exit(0)


def until_painted(text: str, but: float = 0.0) -> None:
    """End the process, with what it has spent, once a picture with that text has been painted.

    but  processor seconds that the measurement itself has spent before
    """
    display, looks = App._display, but

    def painted(self: App[Any], screen: Any, renderable: Any) -> None:
        nonlocal looks
        display(self, screen, renderable)
        spent = time.process_time()
        if screen is self.screen and screen.size.width:
            strips = screen._compositor.render_strips(size=screen.size)
            if any(text in strip.text for strip in strips):
                finish({"seconds": spent - looks})
        looks += time.process_time() - spent

    setattr(App, PAINT, painted)


async def at_rest() -> None:
    await asyncio.sleep(WARM_SECONDS)
    begun, spent = time.monotonic(), time.process_time()
    await asyncio.sleep(REST_SECONDS)
    finish({"share": (time.process_time() - spent) / (time.monotonic() - begun)})


def main(what: str, views: Path) -> None:
    if what == "empty":
        until_painted("")
        App[None]().run()
        return
    from console import tui

    importlib.import_module("console.runner.view")  # counted; only that the views come from a file is not
    loaded, spent = set(sys.modules), time.process_time()
    cockpit = RestingCockpit(pickle.loads(views.read_bytes()))
    reading = time.process_time() - spent
    assert loaded == set(sys.modules), "what the console itself loads would not be counted"
    if what == "paint":
        until_painted(next(iter(cockpit.views)), reading)
    else:
        cockpit.follow = at_rest()
    resting: Any = cockpit  # of a cockpit it has what a screen at rest asks for
    tui.run(resting, title="web", coach=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
