"""Draws the tour's pictures and the README's recording from a played-back rollout: `make shots`.

Nothing is drawn by hand: `tests/shots/record` made the recording, and what is seen is what the screens show at its times.
"""

import asyncio
import gzip
import io
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from console.runner.recording.entry import decision_line
from console.runner.recording.player import Playback
from console.runner.recording.reader import RecordingReader
from console.tui.app import ConsoleApp
from tests.screens.harness import normal, running_app, settle
from tests.shots.frames import Frame, animated, frame
from tests.shots.story import RECORDING, SCENES, SERIES, TOUR, Scene, Shot

MOVIE = TOUR.parent / "console.svg"
MOVIE_SIZE = (110, 32)
LONG_SECONDS, SHORT_SECONDS = 3.2, 0.7  # of a scene's last frame, and of the others


def load(path: Path = RECORDING) -> RecordingReader:
    return RecordingReader(io.BytesIO(gzip.decompress(path.read_bytes())), path.name)


def moment(reader: RecordingReader, after: str, seconds: float) -> float:
    """The time so many seconds after the first decision whose line has these words; from the beginning without any."""
    if not after:
        return reader.begins + seconds
    for index in reader.decisions:
        if after in decision_line(reader.entry(index)):
            return reader.times[index] + seconds
    raise LookupError(f"no decision {after!r}")


@asynccontextmanager
async def stage(path: Path, size: tuple[int, int]) -> AsyncIterator["Stage"]:
    """The screens over a recording that stands still."""
    reader = load(path)
    player = Playback(reader, f"console playback {path.name.removesuffix('.gz')}", clock=lambda: 0.0)
    player.toggle()
    async with running_app(player, size=size) as (app, pilot):
        yield Stage(reader=reader, player=player, app=app, pilot=pilot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    reader: RecordingReader
    player: Playback
    app: ConsoleApp
    pilot: Pilot[int]

    async def show(self, at: float, keys: Sequence[str] = ()) -> None:
        await self.player.seek(at)
        self.app.repaints.outdate()
        await settle(self.pilot)
        await self.pilot.press(*keys)
        await settle(self.pilot)

    async def home(self) -> None:
        """Back to the fleet's screen, with the cursor on the first region."""
        while len(self.app.screen_stack) > 1:
            await self.pilot.press("escape")
            await settle(self.pilot)
        await self.pilot.press("home")


async def pictures(path: Path, shots: Sequence[Shot], size: tuple[int, int]) -> dict[str, str]:
    """Name → SVG."""
    drawn = {}
    async with stage(path, size) as here:
        for shot in shots:
            await here.home()
            await here.show(moment(here.reader, shot.after, shot.seconds), shot.keys)
            drawn[shot.name] = normal(here.app.export_screenshot(title="console"))
    return drawn


async def movie(path: Path, scenes: Sequence[Scene]) -> str:
    """Scenes one after the other, each from the fleet's screen."""
    frames: list[Frame] = []
    async with stage(path, MOVIE_SIZE) as here:
        for scene in scenes:
            begins = moment(here.reader, scene.shot.after, scene.shot.seconds)
            await here.home()
            await here.show(begins, scene.shot.keys)
            for number in range(scene.frames):
                await here.show(begins + number * scene.between)
                last = number == scene.frames - 1
                frames.append(frame(here.app, LONG_SECONDS if last else SHORT_SECONDS))
    return animated(frames, MOVIE_SIZE[0], "A rollout through three regions: plan, canary, gate, backfill, live")


def write(files: Mapping[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{path}: {len(text.encode()):,} bytes", file=sys.stderr)


async def drawn() -> dict[Path, str]:
    """Every picture that the documentation holds."""
    files: dict[Path, str] = {}
    for path, shots, size in SERIES:
        files |= {TOUR / f"{name}.svg": svg for name, svg in (await pictures(path, shots, size)).items()}
    return files | {MOVIE: await movie(RECORDING, SCENES)}


if __name__ == "__main__":
    write(asyncio.run(drawn()))
