"""Batches of NDJSON lines into a managed landing table, each batch once.

Written through deltalake and not through Spark: a batch costs milliseconds of one core instead of half a second
(docs/decisions/0002). The table's lock keeps the two from writing it at the same time.
"""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console import crash
from console.agent.line import Line
from console.agent.store import log, turns
from console.errors import DataError, RegionError

TURN_SECONDS = 60.0


class Intake:
    """The one writer of a pipeline's managed landing tables."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def append(self, table: str, batch: str, lines: Sequence[str]) -> dict[str, Any]:
        """Append lines, matched by column name; a batch id that was committed before is answered, not repeated.

        raises  DataError naming the first line that is no JSON object or whose value does not fit its column
        """
        path = self._line.path(self._landing(table))
        with turns.alone(path, seconds=TURN_SECONDS) as ours:
            if not ours:
                raise RegionError(f"{path}: Spark has been writing it for {TURN_SECONDS:.0f} s", hint="send it again")
            log.whole(path)
            opened = DeltaTable(path)
            app_id = f"ingest/{opened.metadata().id}/{batch}"
            if opened.transaction_version(app_id) is not None:
                return {"rows": 0, "already": True}
            rows = parse_lines(lines, [field.name for field in opened.schema().fields])
            note = {"kind": "landing", "batch": batch, "rows_in": len(rows)}
            properties = CommitProperties(
                custom_metadata={"userMetadata": json.dumps(note)}, app_transactions=[Transaction(app_id, 0)]
            )
            columns = _columns(opened, rows)
            crash.point("before-commit-landing")
            write_deltalake(path, columns, mode="append", commit_properties=properties)
            crash.point("after-commit-landing")
            written = log.position(path, app_id)
        if written is None:
            raise DataError(f"batch {batch} was not committed to {path}", hint="send it again: a batch counts once")
        return {"rows": len(rows), "already": False}

    def _landing(self, table: str) -> str:
        release = self._line.live()
        state = release.table(table)
        if state is None or state.table.kind != "landing":
            raise DataError(f"{table} is no landing table of release {release.id}")
        if not state.table.managed:
            raise DataError(
                f"{table} is not managed: its own producers write it", hint="set `managed: true`", code="P_MANAGED"
            )
        return state.version.path


def parse_lines(lines: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
    """NDJSON lines as objects with known keys only.

    raises  DataError with the line's number
    """
    known = set(columns)
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"line {number} is no JSON: {line[:60]!r}") from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} is no JSON object: {line[:60]!r}")
        if strange := [key for key in row if key not in known]:
            raise DataError(
                f"line {number} has the key {strange[0]!r:.60}, the table has {', '.join(columns)}",
                hint="lines are matched by column name",
            )
        rows.append(row)
    return rows


def _columns(table: DeltaTable, rows: list[dict[str, Any]]) -> Any:
    """Rows as Arrow in the table's schema; what does not fit its column's type is refused, never nulled."""
    import pyarrow as pa

    schema = pa.schema(table.schema().to_arrow())
    arrays = []
    for field in schema:
        values = [_value(row.get(field.name), field.type, field.name, n) for n, row in enumerate(rows, 1)]
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            number, value = next((n, v) for n, v in enumerate(values, 1) if not _fits(pa, v, field.type))
            raise _unfit(number, field.name, value, str(field.type)) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _fits(pa: Any, value: Any, kind: Any) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _value(value: Any, kind: Any, column: str, number: int) -> Any:
    """A JSON value as its column wants it: times from ISO 8601 (UTC where no offset stands), JSON for text columns."""
    name = str(kind)
    if value is None:
        return None
    if name in ("string", "large_string", "string_view"):
        return json.dumps(value) if isinstance(value, dict | list) else value
    try:
        if name.startswith("timestamp") and isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        if name.startswith("date") and isinstance(value, str):
            return date.fromisoformat(value)
        if name.startswith("decimal") and isinstance(value, int | float | str):
            return Decimal(str(value))
    except (ValueError, InvalidOperation):
        raise _unfit(number, column, value, name) from None
    if isinstance(value, bool) and name != "bool":
        raise _unfit(number, column, value, name)
    return value


def _unfit(number: int, column: str, value: Any, kind: str) -> DataError:
    return DataError(
        f"line {number}: {column}: {value!r:.60} is no {kind}", hint="the whole batch was refused; nothing was written"
    )
