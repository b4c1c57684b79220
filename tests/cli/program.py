"""`console` as a process in front of two regions in memory, deployed and with a change waiting.

    python -m tests.cli.program FOLDER BATCH_SECONDS BEFORE WORDS…

BEFORE are comma-separated words of a first call, made silently; WORDS those of the one that is looked at.
"""

import asyncio
import sys
from pathlib import Path

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring
from console.drivers.fake import FakeRegion
from tests.cli.conftest import CHANGE, World


def main(folder: str, seconds: str, before: str, *words: str) -> None:
    world = World(Path(folder))
    assert world.call("apply", "--yes").exit_code == 0
    world.write(CHANGE)
    if before:
        world.call(*before.split(","))
    for script in world.scripts.values():
        script.seconds = float(seconds)
    for name, old in world.regions.items():
        if float(seconds):
            world.regions[name] = FakeRegion(old.region, old.survey(), old.script, sleep=asyncio.sleep)
    cli.main([*words, "--project", folder], obj=CliContext(Wiring(world.drivers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
