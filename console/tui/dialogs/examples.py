"""Rows of a day that differs, read from the region on request. They are kept only in the dialog that shows them."""

from collections.abc import Iterator

from textual.content import Content

from console.errors import ConsoleError
from console.model.compared import DayExamples, ExampleRows
from console.runner.view import Cockpit
from console.tui.dialogs.content import DifferingDay
from console.tui.drawing import safe, wrap_indented

WIDTH = 72  # cells of a dialog's body at 80 columns
VALUE_CHARACTERS = 60


async def example_lines(cockpit: Cockpit, day: DifferingDay) -> tuple[Content, ...]:
    """The rows, or the reason why none can be shown."""
    head = safe(f"{day.region}: {day.table} on {day.day or 'no day'}", "bold", 120)
    try:
        examples = await cockpit.examples(day.region, day.table, day.day)
    except ConsoleError as error:
        return (head, safe(f"{error}{f'; {error.hint}' if error.hint else ''}", "$text-error"))
    return (head, *_lines(examples))


def _lines(examples: DayExamples) -> Iterator[Content]:
    yield from _rows("columns that must be equal", examples.differing)
    if examples.changed.columns:
        yield from _rows("with the columns that are meant to change", examples.changed)


def _rows(what: str, rows: ExampleRows) -> Iterator[Content]:
    yield Content.styled(what, "$text-muted")
    if not rows.old and not rows.new:
        yield Content("  no row differs")
    for mark, side, style in (("-", rows.old, "$text-error"), ("+", rows.new, "$text-success")):
        for row in side:
            values = (
                f"{name}={'NULL' if value is None else str(value)[:VALUE_CHARACTERS]}"
                for (name, _), value in zip(rows.columns, row, strict=True)
            )
            yield from wrap_indented(safe(f"{mark} {' · '.join(values)}", style, 2_000), 2, WIDTH)
