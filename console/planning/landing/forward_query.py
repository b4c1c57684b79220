"""What the `forward_query` of a landing table says: which live column each declared one continues."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.live import Release, TableState
from console.model.schema import Table
from console.planning.sql import reads
from console.planning.sql.tree import DIALECT, kind


@dataclass(frozen=True, slots=True)
class Continued:
    """origins: declared column → the live one; computed: columns given by anything else"""

    origins: Mapping[str, str]
    computed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


NOTHING = Continued({})


def continued(table: Table, live: TableState) -> Continued:
    """One that made the live release says nothing more."""
    if not table.forward_query.strip() or table.forward_query == live.table.forward_query:
        return NOTHING
    sql, problems = reads.forward(table, live)
    if not sql:
        return Continued({}, (), problems)
    types = {column.name: kind(column.type) for column in table.columns}
    origins: dict[str, str] = {}
    computed: list[str] = []
    live_names = {column.name.lower(): column.name for column in live.table.columns}
    for part in sqlglot.parse_one(sql, read=DIALECT).expressions:
        name, value = part.alias_or_name, part.unalias()
        while isinstance(value, exp.Cast) and not value.args.get("safe") and kind(value.to.sql(DIALECT)) == types[name]:
            value = value.this.unnest()
        match value:
            case exp.Column() if value.name.lower() in live_names:
                origins[name] = live_names[value.name.lower()]
            case exp.Null():  # a new column
                pass
            case _:
                computed.append(name)
    return Continued(origins, tuple(computed), problems)


def renamed(table: Table, live: TableState) -> dict[str, str]:
    """Live column → its new name, for columns of a managed landing table that are to go on under another one."""
    if table.kind != "landing" or not table.managed or live.table.kind != "landing":
        return {}
    before = {column.name for column in live.table.columns}
    after = {column.name for column in table.columns}
    pairs = [
        (old, new) for new, old in continued(table, live).origins.items() if new not in before and old not in after
    ]
    olds = [old for old, _ in pairs]
    return {old: new for old, new in pairs if olds.count(old) == 1}


def all_renamed(release: Release, tables: Mapping[str, Table]) -> dict[str, dict[str, str]]:
    """Table → live column → new name, of all landing tables with such columns."""
    found = {
        name: renamed(table, state)
        for name, table in tables.items()
        if table.kind == "landing" and table.forward_query and (state := release.table(name)) is not None
    }
    return {name: names for name, names in found.items() if names}
