"""What a console asks a region for during one rollout, by the names of the calls."""

from collections import Counter
from pathlib import Path
from typing import ClassVar

from console.drivers.fake import FakeDriver
from tests.runner.worlds import World, ends, fake, refreshed


class _Heard(FakeDriver):
    """A driver whose calls are added up over all of its kind."""

    all: ClassVar[Counter[str]] = Counter()

    async def _arrive(self, call: str, pipeline: str = "") -> None:
        self.all[call] += 1
        await super()._arrive(call, pipeline)


async def calls_of_a_rollout(folder: Path) -> dict[str, int]:
    """Calls of a console that plans, accepts, follows and promotes in one region, and then closes."""
    _Heard.all.clear()
    fleet = await refreshed(World(folder, fake("eu")), driver=_Heard)
    try:
        assert ends(await fleet.run(yes=True)) == {"eu": ("live", None)}
    finally:
        await fleet.close()
    return dict(sorted(_Heard.all.items()))
