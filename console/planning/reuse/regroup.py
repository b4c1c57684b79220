"""SQL that assembles a wanted aggregate from the parts that the live version supplies (`reuse/groups`)."""

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from console.planning.fingerprint import DesiredTable
from console.planning.reuse.groups import Kept, StoredState
from console.planning.sql.semantics import aggregates
from console.planning.sql.tree import DIALECT, cast, name, render


def unions(read: str) -> dict[str, exp.Expr]:
    """Stored state → the aggregate that unites it, cast to its type."""
    united: dict[str, exp.Expr] = {}
    for column in sqlglot.parse_one(read, read=DIALECT).find_all(exp.Column):
        whole = column.find_ancestor(exp.Cast)
        if whole is not None and aggregates(whole):
            united.setdefault(column.name.lower(), whole)
    return united


def shows_state(read: str, column: str) -> bool:
    """Whether a column shows its only state unchanged."""
    parts = sqlglot.parse_one(read, read=DIALECT).expressions
    shown = next(part.unalias() for part in parts if part.alias_or_name == column)
    return isinstance(shown, exp.Cast) and shown.this == unions(read).get(column.lower())


def read_over(read: str, kept: Kept) -> str:
    """The wanted read over the live version's stored columns."""
    names = {wanted.lower(): state.name for wanted, state in kept.states.items()}
    tree = sqlglot.parse_one(read, read=DIALECT)
    for column in list(tree.find_all(exp.Column)):
        if column.name.lower() in names:
            column.replace(exp.column(name(names[column.name.lower()])))
    return render(tree)


def copied(wanted: DesiredTable, kept: Kept, instead: Mapping[str, str]) -> str:
    """The wanted stored rows from a view of the live version's that has the table's name: its groups, united by the wanted keys.

    instead  SQL for the keys and states that the live version cannot supply
    """
    united = unions(wanted.read)
    chosen: list[exp.Expr] = []
    groups: list[exp.Expr] = []
    for column in wanted.columns:
        if column.name in kept.keys:
            value = sqlglot.parse_one(kept.keys[column.name], read=DIALECT)
            if value.find(exp.Column) is not None:
                groups.append(value.copy())
        elif (state := kept.states.get(column.name)) is not None:
            value = _united(united[column.name.lower()], state, column.type)
        else:
            value = sqlglot.parse_one(instead[column.name], read=DIALECT)
        chosen.append(exp.alias_(cast(value, column.type), name(column.name)))
    conditions = [sqlglot.parse_one(condition, read=DIALECT) for condition in kept.filters]
    query = exp.select(*chosen).from_(exp.Table(this=name(wanted.table.name)))
    query = query.where(*conditions) if conditions else query
    return render(query.group_by(*groups) if groups else query.having("count(*) > 0", dialect=DIALECT))


def _united(whole: exp.Expr, state: StoredState, type: str) -> exp.Expr:
    place = whole.copy()
    column: exp.Expr = exp.column(name(state.name))
    for old in list(place.find_all(exp.Column)):
        old.replace(cast(column.copy(), type) if state.wider else column.copy())
    return place.this if isinstance(place, exp.Cast) else place
