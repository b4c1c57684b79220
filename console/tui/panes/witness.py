"""Witnesses of a plan: for each edited query, the smallest rows on which old and new differ, and the result of each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import cell, key_hints, safe, stack_lines, wrap_indented
from console.tui.format import plural

if TYPE_CHECKING:
    from console.drivers.replay import Ran
    from console.witness import Witness, WitnessResult

MAX_ROWS = 12  # rows of one table drawn
MAX_QUERIES = 40
MAX_VALUE = 240  # characters of one value
NAME_CELLS = 24  # at most, of a column's name in the vertical layout
OLD_STYLE, NEW_STYLE = "$text-error", "$text-success"
TableRows = tuple[Sequence[str], Sequence[Sequence[Any]]]  # heads, rows
FieldLine = tuple[str, Content, Content]  # sign, name, value


def draw_witness(view: RegionView, width: int, at: float) -> Content:
    """The results; during the search, its progress; before, how to start it."""
    witness = view.witness
    if view.plan is None:
        return stack_lines(
            wrap_indented(Content("no plan yet: a witness shows how its edited queries change the result."), 0, width)
        )
    if witness is None:
        return stack_lines(_offer_lines(width))
    if not witness.edits:
        return stack_lines(
            wrap_indented(Content("the plan edits no query of a table: there is nothing to witness."), 0, width)
        )
    lines = [] if witness.done else _progress_lines(len(witness.results), len(witness.edits), width)
    for number, (table, by) in enumerate(witness.edits[:MAX_QUERIES]):
        result = witness.results[number] if number < len(witness.results) else None
        lines += [Content("")] if lines else []
        lines.append(cell(Content.assemble(safe(table, "bold", 80), " by ", safe(by, limit=80)), width))
        lines += _answer_lines(result, width) if result else [Content.styled("… searching", "$text-muted")]
    if witness.done and not witness.final:
        lines += [Content(""), key_hints(("w", "search again"))]
    return stack_lines(line.truncate(width, ellipsis=True) for line in lines)


def _offer_lines(width: int) -> list[Content]:
    about = "find the smallest made-up rows on which the plan's edited queries give different results"
    spark = "This starts Spark on this machine, which takes half a minute; no row of the region is read."
    return [*wrap_indented(key_hints(("w", about)), 0, width), Content(""), *wrap_indented(Content(spark), 0, width)]


def _progress_lines(done: int, total: int, width: int) -> list[Content]:
    progress = f", {done} of {total} done" if total > 1 else ""
    spark = f"… searching{progress}: Spark is started on this machine, which takes half a minute."
    leave = key_hints(("esc", "leave: the search continues, and its results are kept"))
    return [*wrap_indented(Content.styled(spark, "$text-primary"), 0, width), *wrap_indented(leave, 0, width)]


def _answer_lines(result: "WitnessResult", width: int) -> list[Content]:
    if result.witness is None:
        style = "$text-warning" if result.unavailable else ""
        why = Content.assemble("! " if result.unavailable else "· no witness: ", safe(result.reason))
        return wrap_indented(why.stylize(style) if style else why, 0, width)
    tried = f"confirmed on Spark, found after {plural(result.tried, 'database')}"
    return [
        *wrap_indented(Content.styled(f"✓ {tried}", "$text-success"), 0, width),
        *_witness_lines(result.witness, width),
    ]


def _witness_lines(witness: "Witness", width: int) -> list[Content]:
    lines: list[Content] = []
    for name, given in witness.tables.items():
        lines += _table_lines(safe(name, limit=80), ([column for column, _ in given.columns], given.rows), width, "")
    old, new = witness.old, witness.new
    if not (old.error or new.error) and len(old.rows) == len(new.rows) == 1:
        lines.append(Content("  old and new return one row each:"))
        return lines + _compare_rows(old, new, width)
    return lines + _result_lines("old", old, width, OLD_STYLE) + _result_lines("new", new, width, NEW_STYLE)


def _result_lines(word: str, ran: "Ran", width: int, style: str) -> list[Content]:
    if ran.error:
        return wrap_indented(Content.assemble(f"{word} fails: ", safe(ran.error, "$text-error")), 2, width)
    return _table_lines(Content(f"{word} returns"), (ran.columns, ran.rows), width, style)


def _table_lines(title: Content, table: TableRows, width: int, style: str) -> list[Content]:
    """The rows side by side where they fit; else one column a line."""
    heads, rows = table
    lines = [cell(Content.assemble("  ", title, (f", {plural(len(rows), 'row')}", "$text-muted")), width)]
    shown = [[_value(value, style) for value in row] for row in rows[:MAX_ROWS]]
    names = [safe(head, "$text-muted", 80) for head in heads]
    widths = [max(part.cell_length for part in column) for column in zip(names, *shown, strict=True)] if shown else []
    if sum(widths) + 2 * len(widths) + 4 <= width:
        for row in [names, *shown] if shown else []:
            parts = [cell(part, room) for part, room in zip(row, widths, strict=True)]
            lines.append(Content.assemble("    ", Content("  ").join(parts)))
    else:
        for number, row in enumerate(shown, 1):
            lines += [Content.styled(f"    row {number}", "$text-muted")] if len(shown) > 1 else []
            lines += _field_lines([(" ", name, value) for name, value in zip(names, row, strict=True)], width)
    more = len(rows) - MAX_ROWS
    return [*lines, Content.styled(f"    … and {more:,} more", "$text-muted")] if more > 0 else lines


def _field_lines(fields: Sequence[FieldLine], width: int) -> list[Content]:
    """`~ name  value`, a long value wrapped with an indent."""
    room = min(NAME_CELLS, width // 3, max((name.cell_length for _, name, _ in fields), default=0))
    lines = []
    for sign, name, value in fields:
        first, *others = value.wrap(max(10, width - room - 8))
        lines.append(Content.assemble(f"    {sign} ", cell(name, room), "  ", first))
        lines += [Content.assemble(" " * (room + 8), line) for line in others]
    return lines


def _compare_rows(old: "Ran", new: "Ran", width: int) -> list[Content]:
    """One row each: `~ agent  NULL → 'x'` where they differ, `-` and `+` for columns of only one of them."""
    before = dict(zip(old.columns, old.rows[0], strict=True))
    after = dict(zip(new.columns, new.rows[0], strict=True))
    fields: list[FieldLine] = []
    for name in [*before, *(name for name in after if name not in before)]:
        head = safe(name, limit=80)
        if name not in after:
            fields.append(("-", head, _value(before[name], OLD_STYLE)))
        elif name not in before:
            fields.append(("+", head, _value(after[name], NEW_STYLE)))
        elif repr(before[name]) != repr(after[name]):
            arrow = Content.assemble(_value(before[name], OLD_STYLE), " → ", _value(after[name], NEW_STYLE))
            fields.append(("~", head, arrow))
        else:
            fields.append((" ", safe(name, "$text-muted", 80), _value(before[name], "$text-muted")))
    return _field_lines(fields, width)


def _value(value: Any, style: str) -> Content:
    """As in SQL; text in quotes, so that an empty one can be seen."""
    if value is None:
        return Content.styled("NULL", style)
    if isinstance(value, bool):
        return Content.styled(str(value).lower(), style)
    quote = "'" if isinstance(value, str) else ""
    return Content.assemble((quote, style), safe(str(value), style, MAX_VALUE), (quote, style))
