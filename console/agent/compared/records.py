"""`_console/<pipeline>/comparison`: one row per day and column of each comparison. Append only; counts and no values.

The rows of a portion are one commit. An agent that finds records of the versions that it compares does not compare
that portion again. `model/compared` describes the columns.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table

from console import crash
from console.agent.store import commits
from console.agent.store.ledger import open_table, plain_id, select_rows, sql_text
from console.model.compared import PAGE, ComparedColumn, ComparedPage
from console.model.receipt import LEDGER

_KINDS = {
    "string": DataType.utf8(),
    "bigint": DataType.int64(),
    "double": DataType.float64(),
    "boolean": DataType.bool(),
}
_COLUMNS = {name: _KINDS[kind] for name, kind in LEDGER["comparison"].items()}
_NAMES = {
    "target": "table",
    "column_name": "column",
    "changed_of": "of",
}  # stored column → field, whose name SQL reserves
RESUMED_SECONDS = 6 * 3600.0  # files of an older version are kept for longer


class ComparisonRecords:
    """One pipeline's records; written by the agent alone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "comparison"  # beside `releases` and `rollouts`

    def append(self, rollout: str, records: Sequence[ComparedColumn]) -> None:
        """Store the records of a portion in one commit."""
        if not records:
            return
        stored = [replace(record, at=time.time()) for record in records]
        columns: dict[str, Any] = {
            name: Array(
                [rollout if name == "rollout" else getattr(record, _NAMES.get(name, name)) for record in stored], kind
            )
            for name, kind in _COLUMNS.items()
        }
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        crash.point("before-comparison")
        commits.append(str(self.path), Table.from_pydict(columns))
        crash.point("after-comparison")

    def newest(self, rollout: str, table: str) -> tuple[ComparedColumn, ...]:
        """All records of a table's newest comparison, by day and column; () where there are none."""
        return self._read(rollout, table, "")

    def page(self, rollout: str, after: int) -> ComparedPage:
        """Records of the newest comparison of each table. after: number of records already read"""
        records = self._read(rollout, "", f"LIMIT {PAGE + 1} OFFSET {int(after)}")
        return ComparedPage(records[:PAGE], after + PAGE if len(records) > PAGE else 0)

    def _read(self, rollout: str, table: str, part: str) -> tuple[ComparedColumn, ...]:
        stored = open_table(self.path)
        if stored is None:
            return ()
        where = f"rollout = '{plain_id(rollout)}'" + (f" AND target = {sql_text(table)}" if table else "")
        rounds = select_rows(
            stored, f"SELECT target, old_version, new_version, max(at) AS at FROM t WHERE {where} GROUP BY 1, 2, 3"
        )
        newest = {row["target"]: row for row in sorted(rounds, key=lambda row: float(row["at"]))}
        if not newest:
            return ()
        each = (
            f"(target = {sql_text(name)} AND old_version = {row['old_version']} AND new_version = {row['new_version']})"
            for name, row in newest.items()
        )
        select = f"SELECT * FROM t WHERE {where} AND ({' OR '.join(each)}) ORDER BY target, day, column_name {part}"
        return tuple(_record(row) for row in select_rows(stored, select))


def records_of(warehouse: Path, pipeline: str) -> ComparisonRecords:
    return ComparisonRecords(warehouse / "_console" / pipeline)


def _record(row: dict[str, Any]) -> ComparedColumn:
    return ComparedColumn(**{_NAMES.get(name, name): row[name] for name in _COLUMNS if name != "rollout"})
