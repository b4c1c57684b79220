"""What a landing table's declaration asks for and its table cannot give without new rows: refused, or continuation."""

from console.errors import Problem
from console.model.live import Live, TableState, TableStats
from console.model.schema import Column, Table
from console.planning.diff import Diff
from console.planning.landing.forward_query import continued, renamed
from console.planning.sql.tree import kind


def landing_problems(table: Table, live: TableState, region: Live, diff: Diff) -> tuple[Problem, ...]:
    """Problems of a landing table that is live and declared otherwise now."""
    problems = [*_forward_query(table, live), *_columns(table, live, diff)]
    if (stats := region.table(table.name)) is not None:
        problems += _partitioning(table, live, stats)
    return tuple(problems)


def unpartitioned(table: Table, stats: TableStats | None, live: TableState | None, region: str) -> list[Problem]:
    """C131 as a warning: a declared partitioning that the real table does not have and that nothing is going to give it."""
    if stats is None or not table.partition_by or _stored(table, live) == stats.partition_by:
        return []
    if live is not None and table.managed and table.partition_by != live.table.partition_by:
        return []  # refused
    has = f"partitioned by {', '.join(stats.partition_by)}" if stats.partition_by else "not partitioned"
    message = f"{table.name} is declared as partitioned by {', '.join(table.partition_by)}, and is {has} in {region}"
    hint = f"{_declare(stats.partition_by)}; partition the tables below it"
    return [Problem(code="C131", message=message, where=table.where, hint=hint, severity="warn", node=table.name)]


def _stored(table: Table, live: TableState | None) -> tuple[str, ...]:
    if live is None:
        return table.partition_by
    was = {new: old for old, new in renamed(table, live).items()}
    return tuple(live.stored_in(was.get(name, name))[0] for name in table.partition_by)


def _declare(partition_by: tuple[str, ...]) -> str:
    return f"declare partition_by: [{', '.join(partition_by)}]" if partition_by else "leave partition_by out"


def _forward_query(table: Table, live: TableState) -> list[Problem]:
    """C106, C107 as for other tables; C130 where it computes something."""
    if not table.managed and table.forward_query and table.forward_query != live.table.forward_query:
        message = f"forward_query of {table.name}: its producers write this table, and none of its rows are rewritten"
        hint = "drop it; rename and convert in the queries that read the table"
        return [_refused("C130", table, message, hint)]
    continuation = continued(table, live)
    problems = list(continuation.problems)
    for name, why in continuation.refused.items():
        message = f"forward_query of {table.name} computes {name} for rows that stay as they were sent, and {why}"
        other = "as another column" if live.table.column(name) else "by try_cast, CASE, coalesce and functions of text"
        hint = f"compute {name} in the queries that read {table.name}; or give it {other}"
        problems.append(_refused("C130", table, message, hint))
    taken = renamed(table, live)
    for new, old in continuation.origins.items():
        if new != old and taken.get(old) != new:
            message = f"forward_query of {table.name} gives {new} what {old} holds, and {_stays(table, live, new, old)}"
            hint = "a landing column goes on under one new name: plan and promote the rename by itself first"
            problems.append(_refused("C130", table, message, hint))
    return problems


def _stays(table: Table, live: TableState, new: str, old: str) -> str:
    if table.column(old):
        return f"{old} is declared as well"
    return f"{new} is live already" if live.table.column(new) else f"another column continues {old}, too"


def _columns(table: Table, live: TableState, diff: Diff) -> list[Problem]:
    """C132 for what no reading of the stored rows gives."""
    problems: list[Problem] = []
    continuation = continued(table, live)
    for column in table.columns:
        why = diff.computed.get(column.name)
        match why.kind if why else "new":
            case "new":
                continue
            case "type" | "expression" if column.name in {*continuation.computed, *continuation.refused}:
                continue
            case "nullability":
                message = f"{table.name}.{column.name} may no longer be NULL, and nothing proves it of the rows that are there"
                hint = "leave it nullable; filter or coalesce in the queries that read it"
            case "type":
                message, hint = _retyped(table, column, live)
            case "expression":
                message = f"{table.name}.{column.name} is another column now, and the live one of this name is renamed"
                hint = "promote the rename first; then the name is free for a new column"
        problems.append(_refused("C132", table, message, hint))
    return problems


def _retyped(table: Table, column: Column, live: TableState) -> tuple[str, str]:
    """Only a column by which days or files are problems: other types are refused before (C112)."""
    was = live.table.column(column.name)
    old = kind(was.type) if was else "?"
    role = "time column" if column.name == table.time else "partition column"
    return (
        f"{table.name}.{column.name} is the {role}: its {old} values cannot lie beside wider ones",
        f"leave it {old}, and convert in the queries that read it; or add a column of another name",
    )


def _partitioning(table: Table, live: TableState, stats: TableStats) -> list[Problem]:
    if table.partition_by == live.table.partition_by or _stored(table, live) == stats.partition_by:
        return []
    if not table.managed:
        return []
    now = f"by {', '.join(table.partition_by)}" if table.partition_by else "not at all"
    message = f"{table.name} is to be partitioned {now}, and its rows lie as they were written: a landing table is not rewritten"
    hint = f"{_declare(live.table.partition_by)}, as it is live; partition the tables below it"
    return [_refused("C131", table, message, hint)]


def _refused(code: str, table: Table, message: str, hint: str) -> Problem:
    return Problem(code=code, message=message, where=table.where, hint=hint, severity="refuse", node=table.name)
