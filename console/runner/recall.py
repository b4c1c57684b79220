"""Adds to the views the events that regions stored before this console watched them, or while their links were lost."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from console.drivers.protocol import Driver
from console.errors import ConsoleError
from console.runner.view_events import with_history, with_samples
from console.runner.watch import RegionBoard

SAMPLES_HOURS = 1.0


class Recall:
    """Asks a few regions at a time. Without an answer the view shows the console's own observations."""

    def __init__(self, board: RegionBoard, drivers: Mapping[str, Driver], parallelism: int) -> None:
        self._board, self._drivers = board, drivers
        self._slots = asyncio.Semaphore(parallelism)
        self._sampled: set[str] = set()

    async def samples(self, name: str) -> None:
        """Rates and lag of the last hour, asked for once."""
        if name in self._sampled:
            return
        self._sampled.add(name)
        async with self._slots:
            with suppress(ConsoleError):
                samples = await self._drivers[name].samples(self._board.pipeline, SAMPLES_HOURS, None)
                self._board.put(with_samples(self._board[name], samples))

    async def events(self, name: str) -> None:
        """Stored events of the region's rollout."""
        async with self._slots:
            with suppress(ConsoleError):
                if rollout := self._board[name].status.rollout:
                    history = await self._drivers[name].history(self._board.pipeline, rollout)
                    self._board.put(with_history(self._board[name], history.events))
