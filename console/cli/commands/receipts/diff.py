"""`console diff`: some rows of one day that differ between two versions of a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.receipts.asking import asked, errors_data, print_errors
from console.cli.flags import command
from console.cli.format import table
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import cli_context, open_project
from console.errors import UsageError
from console.model.codec import encode
from console.model.compared import EXAMPLES, DayExamples, ExampleRows
from console.model.slices import is_day
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.protocol import Driver

NO_DAY = "none"


@command("diff", examples="console diff --table requests --day 2026-11-07 --region eu")
@click.option("--table", "name", required=True, metavar="T", help="A table that the newest rollout compares.")
@click.option("--day", required=True, metavar="D", help="UTC: 2026-11-07, or `none` for rows without a time.")
def diff(name: str, day: str) -> int:
    """Fetch some rows of one day that differ between two versions of a table.

    At most ten of each version: of the live one and of the one that is being built, or of the one before and the live
    one. Reads both tables, in the region's Spark, as they were compared. The rows are shown and stored nowhere;
    `console show ID --days` has the counts of every day.
    """
    if day != NO_DAY and not is_day(day):
        raise UsageError(f"--day {day!r:.60} is not a day", hint="--day 2026-11-07, or --day none")
    project, output = open_project(), Output(cli_context().flags)
    asked_day = "" if day == NO_DAY else day

    async def ask(driver: "Driver") -> DayExamples:
        return await driver.examples(project.pipeline, name, asked_day)

    answers, errors = run_interruptible(asked(project, ask))
    if output.json:
        regions = [{"region": region, **_data(examples)} for region, examples in answers.items()]
        output.document({"regions": regions, "errors": errors_data(errors)})
    elif answers:
        output.data("\n\n".join(examples_text(region, examples) for region, examples in answers.items()))
    return print_errors(output, errors)


def examples_text(region: str, examples: DayExamples) -> str:
    """Rows of each side under a line that names the side."""
    versions = f"versions {examples.old_version} and {examples.new_version}"
    lines = [safe_text(f"{region}: {examples.table} on {examples.day or 'no day'} ({versions})")]
    lines += _rows_text("columns that must be equal", examples.differing)
    if examples.changed.columns:
        lines += _rows_text("with the columns that are meant to change", examples.changed)
    for each in examples.ranges:
        was, now = (
            f"{_cell(least)} … {_cell(greatest)}"
            for least, greatest in ((each.old_least, each.old_greatest), (each.new_least, each.new_greatest))
        )
        lines.append(f"  {safe_text(each.column)}: from {was} to {now}")
    return "\n".join(lines)


def _rows_text(what: str, rows: ExampleRows) -> list[str]:
    if not rows.old and not rows.new:
        return [f"  {what}: no row differs"]
    lines = []
    for side, some in (("old", rows.old), ("new", rows.new)):
        most = ", the first ones" if len(some) == EXAMPLES else ""
        lines.append(f"  {what}: {len(some)} only in the {side} version{most}")
        if some:
            heads = [safe_text(name) for name, _ in rows.columns]
            lines.append(table(heads, [[_cell(value) for value in row] for row in some], indent=4))
    return lines


def _cell(value: Any) -> str:
    return "NULL" if value is None else safe_text(str(value), 80)


def _data(examples: DayExamples) -> dict[str, Any]:
    return {
        "table": examples.table,
        "day": examples.day,
        "versions": {"old": examples.old_version, "new": examples.new_version},
        "differing": _rows_data(examples.differing),
        "changed": _rows_data(examples.changed),
        "ranges": [_plain(each) for each in examples.ranges],
    }


def _rows_data(rows: ExampleRows) -> dict[str, Sequence[Mapping[str, Any]]]:
    names = [name for name, _ in rows.columns]
    return {
        "old": [dict(zip(names, row, strict=True)) for row in rows.old],
        "new": [dict(zip(names, row, strict=True)) for row in rows.new],
    }


def _plain(record: object) -> dict[str, Any]:
    return {key: value for key, value in encode(record).items() if key != "type"}
