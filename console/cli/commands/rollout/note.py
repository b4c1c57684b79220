"""`console note`: a note that stays with a region."""

from typing import TYPE_CHECKING, Any

import click

from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output, as_data
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import ConsoleError, DataError, UsageError
from console.model.note import note_text
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.note import Note


@command(
    "note",
    changes=True,
    examples="""console note --region eu "waits for Ana: the source is moved at 14:00Z"
console note --regions eu,us promote after the freeze""",
)
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
def note(text: tuple[str, ...]) -> int:
    """Leave a note with the rollout of a region, for the next operator.

    One line of up to 500 characters. The region stores it, with your name and the time: `status`, `history`, `show`,
    `handover`, the log and the gate show it. It changes nothing else, and can be left in any state.
    """
    try:
        line = note_text(" ".join(text))
    except DataError as error:
        raise UsageError(error.message, hint=error.hint, code=error.code) from None
    project = open_project(need_regions=True)
    return run_interruptible(_leave(project, Output(cli_context().flags), line))


async def _leave(project: OpenProject, output: Output, line: str) -> int:
    entries: list[dict[str, Any]] = []
    errors: list[tuple[str, ConsoleError]] = []
    async with project.fleet() as fleet:
        for name in project.names:
            try:
                status = await fleet.note(name, line)
            except ConsoleError as error:
                errors.append((name, error))
            else:
                stored = status.notes[-1].text if status.notes else line
                entries.append({"region": name, "rollout": status.rollout, "note": stored})
    if output.json:
        failed = [{"region": name, "error": as_data(missed)} for name, missed in errors]
        output.document({"regions": [*entries, *failed]})
    else:
        for entry in entries:
            output.data(safe_text(f"{entry['region']}: noted with {entry['rollout']}"))
    for name, missed in errors:
        output.print_region_error(name, missed)
    return max((missed.exit_code for _, missed in errors), default=0)


def notes_data(notes: "tuple[Note, ...]") -> list[dict[str, Any]]:
    """For `--output json`."""
    return [{"at": note.at, "by": note.by, "host": note.host, "text": note.text} for note in notes]
