"""Values that come out otherwise than they were: types that narrow, expressions and joins that do not repeat."""

from console.errors import Problem
from console.model.live import TableState
from console.planning.desired import Wanted
from console.planning.diff import Diff, narrows
from console.planning.sql.tree import kind


def repeatable(wanted: Wanted, before: TableState) -> list[Problem]:
    """What a replay gives anew, and not as readers know it."""
    table, found = wanted.table, []
    if joined := [name for name in wanted.values if name in wanted.joined]:
        message = f"{table.name} is replayed through a join: {', '.join(joined)} may differ where the joined table has changed since"
        found.append(Problem("C113", message, table.where, "these columns are not compared", "warn", table.name))
    if wanted.volatile:
        message = f"{table.name}: {', '.join(sorted(wanted.volatile))} will not come out as before (now(), rand() and the like)"
        hint = "these columns are not compared; a forward_query keeps what is stored"
        found.append(Problem("C114", message, table.where, hint, "warn", table.name))
    sketches = [
        n for n in wanted.inexact if any(c.name.startswith(f"{n}__") and c.type == "binary" for c in wanted.columns)
    ]
    if changed := [n for n in sketches if n in before.values and before.values[n] != wanted.values[n]]:
        message = f"{table.name}: the estimates in {', '.join(changed)} are computed another way: published numbers will change"
        found.append(Problem("C115", message, table.where, "tell who publishes them", "note", table.name))
    return found


def types(wanted: Wanted, diff: Diff, *, forward: str = "") -> list[Problem]:
    """Types that change so that values are cut, or may not fit. forward: the query that converts, if it is not the feed"""
    table, found = wanted.table, []
    tried = wanted.tries if not forward else frozenset()
    for change in diff.columns:
        column = table.column(change.column)
        if change.change != "type" or column is None or change.column in tried or "try_" in forward.lower():
            continue
        old, new = kind(change.was), kind(column.type)
        if narrows(old, new):
            message = f"{table.name}.{column.name} narrows from {old} to {new}, which loses digits without an error"
            hint = "compute it with try_cast and a default, or give it another name"
            found.append(Problem("C103", message, table.where, hint, "refuse", table.name))
        elif new != "string" and not _wider(old, new):
            message = (
                f"{table.name}.{column.name} changes from {old} to {new}: a value that does not convert stops its batch"
            )
            hint = "try_cast and coalesce accept such values"
            found.append(Problem("C103", message, table.where, hint, "warn", table.name))
    return found


def _wider(old: str, new: str) -> bool:
    order = ("tinyint", "smallint", "int", "bigint")
    return (old in order and new in order and order.index(old) < order.index(new)) or (old, new) == ("float", "double")


def partitions(wanted: Wanted, diff: Diff) -> list[Problem]:
    """A column that lays the table out gets other values: its rows lie elsewhere afterwards."""
    table = wanted.table
    moved = [name for name in table.partition_by if name in diff.computed and diff.computed[name].endswith(" changed")]
    if not moved:
        return []
    message = f"{table.name} is partitioned by {', '.join(moved)}, whose values change: every row may move to another partition"
    return [Problem("C105", message, table.where, "queries that name a partition find other rows", "warn", table.name)]
