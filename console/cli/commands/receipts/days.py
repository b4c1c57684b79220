"""The records of a rollout's comparison, day by day and column by column, as text and as JSON."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from console.cli.format import count, table
from console.model.codec import encode
from console.model.compared import ROWS, TOGETHER, ComparedColumn
from console.model.share import percent_text
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.protocol import Driver

_WORDS = {True: "equal", False: "DIFFERS", None: "meant to change"}
_COLUMNS = {ROWS: "rows", TOGETHER: "columns together"}


async def every_record(driver: "Driver", pipeline: str, rollout: str) -> tuple[ComparedColumn, ...]:
    """All records of a rollout, page by page: together they may be longer than a frame."""
    page = await driver.compared(pipeline, rollout)
    records = list(page.records)
    while page.after:
        page = await driver.compared(pipeline, rollout, page.after)
        records += page.records
    return tuple(records)


def days_data(rollout: str, regions: Mapping[str, Sequence[ComparedColumn]]) -> dict[str, Any]:
    entries = [
        {"region": region, "records": [_record_data(record) for record in records]}
        for region, records in regions.items()
    ]
    return {"rollout": rollout, "regions": entries}


def days_text(rollout: str, regions: Mapping[str, Sequence[ComparedColumn]]) -> str:
    """A table for each compared table of each region."""
    blocks = []
    for region, records in regions.items():
        if not records:
            blocks.append(safe_text(f"{region}: {rollout}: nothing was recorded of a comparison"))
        for name, group in groupby(records, key=lambda record: record.table):
            blocks.append(_table_text(region, rollout, name, list(group)))
    return "\n\n".join(blocks)


def _table_text(region: str, rollout: str, name: str, records: Sequence[ComparedColumn]) -> str:
    days = {record.day for record in records}
    differing = {record.day for record in records if record.equal is False}
    versions = f"versions {records[0].old_version} and {records[0].new_version}"
    head = f"{region}: {rollout}: {name}, {count(len(days), 'day')}, {len(differing)} of them different ({versions})"
    heads = ["day", "column", "old", "new", "", "changed"]
    rows = [
        [
            record.day or "no day",
            _COLUMNS.get(record.column, record.column),
            f"{record.old:,}",
            f"{record.new:,}",
            _WORDS[record.equal] + (f", {record.quarantined:,} in quarantine" if record.quarantined else ""),
            f"{percent_text(record.changed, record.of)} of {record.of:,}" if record.of else "",
        ]
        for record in records
    ]
    cells = [[safe_text(cell) for cell in row] for row in rows]
    return f"{safe_text(head)}\n{table(heads, cells, right=(2, 3), indent=2)}"


def _record_data(record: ComparedColumn) -> dict[str, Any]:
    return {key: value for key, value in encode(record).items() if key != "type"}
