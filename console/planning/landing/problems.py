"""Problems of a landing table's declaration: changes that would need its rows rewritten, and properties that the real
table lacks."""

from console.errors import Problem
from console.model.live import Live, TableState, TableStats
from console.model.schema import Column, Table
from console.planning.diff import Diff
from console.planning.landing.conversion import conversion
from console.planning.landing.forward_query import continued, renamed
from console.planning.landing.new_version import relaid
from console.planning.sql.tree import kind
from console.remedy import DropKey, Edit, KeepLive, Remedy, RunCommand, SetKey


def landing_problems(table: Table, live: TableState, region: Live, diff: Diff) -> tuple[Problem, ...]:
    """Problems of a live landing table whose declaration changed."""
    problems = [*_forward_query(table, live), *_columns(table, live, diff), *_accepts_dropped(table, live)]
    if (stats := region.table(table.name)) is not None:
        problems += _partitioning(table, live, stats)
    return tuple(problems)


def not_as_declared(table: Table, stats: TableStats | None, live: TableState | None, region: str) -> list[Problem]:
    """C131 as warnings: declared properties that the real table lacks and that no step will add."""
    clustering, nulls = _unclustered(table, stats, region), _nullable_there(table, stats, region)
    return [*_unpartitioned(table, stats, live, region), *clustering, *nulls]


def _unpartitioned(table: Table, stats: TableStats | None, live: TableState | None, region: str) -> list[Problem]:
    if stats is None or not table.partition_by or _stored(table, live) == stats.partition_by:
        return []
    if live is not None and table.managed and table.partition_by != live.table.partition_by:
        return []  # refused
    has = f"partitioned by {', '.join(stats.partition_by)}" if stats.partition_by else "not partitioned"
    message = f"{table.name} is declared as partitioned by {', '.join(table.partition_by)}, and is {has} in {region}"
    remedies = _partitioned(table, stats.partition_by)
    return [
        Problem(code="C131", message=message, where=table.where, severity="warn", node=table.name, remedies=remedies)
    ]


def _unclustered(table: Table, stats: TableStats | None, region: str) -> list[Problem]:
    """C131 for a declared clustering of a foreign table, whose writers decide its layout."""
    if stats is None or not table.cluster_by or table.managed or "clustering" in stats.features:
        return []
    by = ", ".join(table.cluster_by)
    message = f"{table.name} is declared as clustered by {by}, and is not clustered in {region}"
    remedies = (DropKey(node=table.name, key="cluster_by", effect=in_an_adapter(table, "cluster")),)
    return [
        Problem(code="C131", message=message, where=table.where, severity="warn", node=table.name, remedies=remedies)
    ]


def _nullable_there(table: Table, stats: TableStats | None, region: str) -> list[Problem]:
    """C131 for columns of a foreign table that are declared NOT NULL, and are nullable there."""
    real = {column.name.lower(): column for column in stats.columns} if stats and not table.managed else {}
    names = tuple(c.name for c in table.columns if not c.nullable and (at := real.get(c.name.lower())) and at.nullable)
    if not names:
        return []
    message = f"{table.name} is declared without NULL in {', '.join(names)}, which may be NULL in {region}"
    rest = in_an_adapter(table, "coalesce")
    remedies = (SetKey(node=table.name, key="nullable", value="true", columns=names, effect=rest),)
    return [
        Problem(code="C131", message=message, where=table.where, severity="warn", node=table.name, remedies=remedies)
    ]


def _stored(table: Table, live: TableState | None) -> tuple[str, ...]:
    if live is None:
        return table.partition_by
    was = {new: old for old, new in renamed(table, live).items()}
    return tuple(live.stored_in(was.get(name, name))[0] for name in table.partition_by)


def _partitioned(table: Table, by: tuple[str, ...], effect: str = "") -> tuple[Remedy, ...]:
    below = "partition the tables below it" if table.managed else in_an_adapter(table, "partition")
    rest = f"{effect}; {below}".removeprefix("; ")
    if not by:
        return (DropKey(node=table.name, key="partition_by", effect=rest),)
    return (SetKey(node=table.name, key="partition_by", value=f"[{', '.join(by)}]", effect=rest),)


def in_an_adapter(table: Table, what: str) -> str:
    """Remedy text: do `what` in an adapter in front of a foreign table, with the command that creates the adapter."""
    return f"{what} in an adapter in front of it (console adapt {table.name} --as {table.name}_adapter)"


def _forward_query(table: Table, live: TableState) -> list[Problem]:
    """C106 and C107 as for other tables; C130 for columns that cannot be computed or continued."""
    if not table.managed and table.forward_query and table.forward_query != live.table.forward_query:
        message = f"forward_query of {table.name}: its producers write this table, and none of its rows are rewritten"
        rest = in_an_adapter(table, "rename and convert")
        return [_refused("C130", table, message, DropKey(node=table.name, key="forward_query", effect=rest))]
    continuation = continued(table, live)
    problems = list(continuation.problems)
    for name, why in continuation.refused.items():
        message = f"forward_query of {table.name} computes {name} for rows that stay as they were sent, and {why}"
        other = "as another column" if live.table.column(name) else "by try_cast, CASE, coalesce and functions of text"
        below = Edit(node=table.name, how=f"compute {name} in the queries that read {table.name}")
        apart = (_by_shape(table, live),) if name in continuation.alike else ()
        problems.append(_refused("C130", table, message, *apart, below, Edit(node=table.name, how=f"give it {other}")))
    taken = renamed(table, live)
    for new, old in continuation.origins.items():
        if new != old and taken.get(old) != new:
            message = f"forward_query of {table.name} gives {new} what {old} holds, and {_stays(table, live, new, old)}"
            how = "a landing column can take one new name: plan and promote the rename by itself first"
            problems.append(_refused("C130", table, message, Edit(node=table.name, how=how)))
    return problems


def another_day(table: Table, live: Table) -> tuple[Problem, ...]:
    """C134: a change of `accepts_until` alone needs `console accept-until`, not a rollout."""
    if table.accepts_until == live.accepts_until:
        return ()
    was, now = live.accepts_until or "their release is cleaned up", table.accepts_until or "their release is cleaned up"
    message = f"{table.name} takes lines of older shapes until {was}, and its file says until {now}"
    remedies = (RunCommand(command="console accept-until"),)
    return (
        Problem(code="C134", message=message, where=table.where, severity="note", node=table.name, remedies=remedies),
    )


def _accepts_dropped(table: Table, live: TableState) -> list[Problem]:
    """C133: without `accepts`, lines of the older shape can no longer be distinguished from newer ones."""
    if live.table.accepts is None or table.accepts is not None:
        return []
    message = f"{table.name} is declared without `accepts`: lines of the older shape are then stored as newer ones"
    accepts = live.table.accepts
    value = f"{{marker: {accepts.marker}}}" if accepts.marker else f"{{shape: {accepts.shape}}}"
    remedies = (SetKey(node=table.name, key="accepts", value=value, effect="until nobody sends them"),)
    return [
        Problem(code="C133", message=message, where=table.where, severity="warn", node=table.name, remedies=remedies)
    ]


def _by_shape(table: Table, live: TableState) -> Remedy:
    """The `accepts` key by which lines name their shape."""
    taken = live.table.accepts.shape if live.table.accepts else ""
    shape = next(name for number in range(2, 4) if (name := f"v{number}") != taken)
    effect = (
        "which producers then send with their lines (ingest --shape), or a marker: a new column that only they give"
    )
    return SetKey(node=table.name, key="accepts", value=f"{{shape: {shape}}}", effect=effect)


def _stays(table: Table, live: TableState, new: str, old: str) -> str:
    if table.column(old):
        return f"{old} is declared as well"
    return f"{new} is live already" if live.table.column(new) else f"another column continues {old}, too"


def _columns(table: Table, live: TableState, diff: Diff) -> list[Problem]:
    """C132 for column changes that cannot be computed from the stored rows at read."""
    problems: list[Problem] = []
    continuation = continued(table, live)
    for column in table.columns:
        why = diff.computed.get(column.name)
        match why.kind if why else "new":
            case "new":
                continue
            case "type" | "expression" if column.name in {
                *continuation.computed,
                *continuation.converted,
                *continuation.refused,
            }:
                continue
            case "nullability":
                message = f"{table.name}.{column.name} may no longer be NULL, and nothing proves it of the rows that are there"
                rest = "filter or coalesce in the queries that read it"
                remedies = _written(table, column, "nullable", "true", rest)
            case "type":
                message, remedies = _retyped(table, column, live)
            case "expression":
                message = f"{table.name}.{column.name} is another column now, and the live one of this name is renamed"
                remedies = (
                    Edit(node=table.name, how="promote the rename first; then the name is free for a new column"),
                )
        problems.append(_refused("C132", table, message, *remedies))
    return problems


def _written(table: Table, column: Column, key: str, value: str, effect: str) -> tuple[Remedy, ...]:
    return (SetKey(node=table.name, key=key, value=value, columns=(column.name,), effect=f"as it is live; {effect}"),)


def _retyped(table: Table, column: Column, live: TableState) -> tuple[str, tuple[Remedy, ...]]:
    """The time or a partition column; a type change of any other column was refused before (C112)."""
    was = live.table.column(column.name)
    old = kind(was.type) if was else "?"
    role = "time column" if column.name == table.time else "partition column"
    return (
        f"{table.name}.{column.name} is the {role}: its {old} values cannot lie beside wider ones",
        (
            *_written(table, column, "type", old, "convert in the queries that read it"),
            Edit(node=table.name, how="add a column of another name"),
        ),
    )


def _partitioning(table: Table, live: TableState, stats: TableStats) -> list[Problem]:
    if (converted := conversion(table, live)) is not None:
        if not converted.why:
            return list(converted.problems)
        message = f"forward_query of {table.name} needs a new version of the table, and {converted.why}"
        return [_refused("C130", table, message, KeepLive(node=table.name))]
    if (layout := relaid(table, live, stats)) is None or not layout.why:
        return []
    now = f"by {', '.join(table.partition_by)}" if table.partition_by else "not at all"
    message = f"{table.name} is to be partitioned {now}, and {layout.why}"
    return [
        _refused(
            "C131", table, message, *_partitioned(table, live.table.partition_by, "until then leave it as it is live")
        )
    ]


def _refused(code: str, table: Table, message: str, *remedies: Remedy) -> Problem:
    return Problem(code=code, message=message, where=table.where, severity="refuse", node=table.name, remedies=remedies)
