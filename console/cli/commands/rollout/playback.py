"""`console playback`: a recording, or a rollout that a region has stored, in the screens."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.wiring import OpenProject, choices, cli_context, open_project, why_no_screen
from console.errors import UsageError

if TYPE_CHECKING:
    from console.runner.recording.reader import RecordingReader


@command(
    "playback",
    examples="""console watch --record night.jsonl
    console playback night.jsonl
    console playback night.jsonl --at 03:12 --speed 60
    console playback --rollout web-7 --region eu""",
)
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--rollout", metavar="ID", help="Instead of FILE: what the region has stored of this rollout.")
@click.option("--at", "moment", metavar="TIME", help="Begin there: 13:02, 2026-11-23T13:02Z, +5m (UTC).")
@click.option(
    "--speed",
    type=click.FloatRange(1, 1000),
    default=10.0,
    show_default=True,
    metavar="N",
    help="Recorded seconds a second.",
)
def playback(file: Path | None, rollout: str | None, moment: str | None, speed: float) -> int:
    """Play a recording of rollouts in the screens.

    The screens are those of the regions themselves, at the recorded time: space pauses, `,` and `.` go to the decision
    before and to the next one, `<` and `>` change the speed, `b` and `f` go a minute back and on, `a` asks for a time. Nothing
    can be changed. A FILE is written by `console watch --record` or `console --record`.

    With --rollout the recording is made from what the region has stored: events, and samples of the last 24 hours. What is
    fleeting is missing then: progress within a batch, Spark's job, the lag of each second.
    """
    from console.runner.recording.player import Playback
    from console.runner.recording.reader import open_recording
    from console.runner.recording.times import read_moment

    if (file is None) == (rollout is None):
        raise UsageError("name a recording, or a rollout", hint="console playback FILE; or --rollout ID --region NAME")
    context = cli_context()
    screen, why = context.wiring.screen, why_no_screen()
    if screen is None or why:
        raise UsageError(why or "there is no screen here", hint="console show ID prints a rollout")
    if file is not None:
        recording, words = open_recording(file), command_words(str(file))
    else:
        project = open_project(one=True)
        recording = run_interruptible(stored(project, rollout or ""))
        words = command_words("--rollout", rollout or "", "--region", project.regions[0].name)
    with closing(recording):
        at = None if moment is None else read_moment(moment, recording.begins, recording.begins, recording.ends)
        return screen(Playback(recording, words, speed=speed, at=at), title=recording.header.pipeline, coach=True)


def command_words(*words: str) -> str:
    """The command that plays a recording, quoted for a shell."""
    import shlex

    return shlex.join(("console", "playback", *words))


async def stored(project: OpenProject, rollout: str) -> "RecordingReader":
    """raises  UsageError if the region has no such rollout"""
    from console.model.measured import KEPT_HOURS
    from console.runner.recording.stored import stored_recording

    async with project.drivers() as drivers:
        (driver,) = drivers.values()
        history = await driver.history(project.pipeline, rollout)
        if not history.events:
            _unknown(rollout, driver.region.name, [status.rollout for status in history.rollouts])
        samples = await driver.samples(project.pipeline, KEPT_HOURS, None)
        state = await driver.state(project.pipeline)
    plan = state.plan if state.status.rollout == rollout else None
    return stored_recording(project.pipeline, driver.region, history.events, samples, plan)


def _unknown(rollout: str, region: str, known: Sequence[str]) -> None:
    raise UsageError(f"{region} knows no rollout {rollout!r:.60}", **choices(known, rollout))
