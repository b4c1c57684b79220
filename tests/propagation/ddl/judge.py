"""The migrations that `observe` derives from a script, applied to the catalog before it, compared with the catalog after it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from console.propagation.migration import (
    KEPT,
    PHASES,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    ReplaceColumn,
    SwapColumns,
)
from console.propagation.observe.events import Observation
from tests.propagation.ddl.catalog import Name, Relation, Truth

Catalog = dict[Name, Relation]
Same = Callable[[str, str, str], bool]  # (a literal, an expression, a type) → the server finds them the same value
_GONE = ("drop_table", "rename_table", "drop_schema", "rename_schema")


@dataclass(frozen=True)
class Played:
    """A column as the migrations leave it. origin: its number in the catalog before; None for a new one"""

    origin: int | None
    generic: str
    nullable: bool
    default: str | None = None
    defaulted: bool = False
    remade: bool = False


def differences(before: Catalog, after: Catalog, result: Observation, same: Same) -> list[str]:
    """What is silently wrong; [] where all is as the catalog says, in the order written and with all of `pre` first."""
    migrations = [one.migration for one in result.migrations]
    wrong = _compared(before, after, migrations, result, same)
    late = _compared(before, after, sorted(migrations, key=lambda m: PHASES.index(m.phase)), result, same)
    return wrong or [f"pre before post: {one}" for one in late]


def _compared(
    before: Catalog, after: Catalog, migrations: list[Migration], result: Observation, same: Same
) -> list[str]:
    messages = {one.table for one in result.ignored if one.kind in _GONE}
    wrong = []
    for name, relation in before.items():
        if not relation.replicates:
            continue
        full, now = ".".join(name), after.get(name)
        mine = [one.operation for one in migrations if (one.schema, one.table) == name]
        if now is None or not now.replicates:
            if full not in messages and not (now is not None and now.partition):
                wrong.append(f"{full} is gone, and nothing says so")
            continue
        try:
            columns = _played(relation, mine)
        except _Impossible as error:
            wrong.append(f"{full}: {error}")
            continue
        wrong += [f"{full}: {one}" for one in _differ(columns, relation, now, same)]
    known = {name for name, relation in before.items() if relation.replicates}
    for one in migrations:
        name = (one.schema, one.table)
        there = after.get(name)
        if name not in known and (there is None or not there.replicates):
            wrong.append(f"a change of {'.'.join(name)}, which is no table: {one.title}")
    return wrong


class _Impossible(Exception):
    """A migration that does not fit the table it is about."""


def _played(relation: Relation, operations: list[Any]) -> dict[str, Played]:
    table = {c.name: Played(c.num, c.generic, c.nullable) for c in relation.columns}
    for operation in operations:
        match operation:
            case AddColumn(name=name):
                if name in table:
                    raise _Impossible(f"adds {name}, which is there")
                table[name] = _new(operation.data_type, operation.nullable, operation.default)
            case DropColumn(name=name):
                if table.pop(name, None) is None:
                    raise _Impossible(f"drops {name}, which is not there")
            case SwapColumns(columns=pairs):
                if not {old for old, _ in pairs} <= set(table):
                    raise _Impossible(f"renames {pairs}, which are not all there")
                moved = {new: table.pop(old) for old, new in pairs}
                if set(moved) & set(table):
                    raise _Impossible(f"renames {pairs}, where a name is there")
                table |= moved
            case ReplaceColumn(name=name, source=source, to=to):
                if name not in table or (source is not None and source not in table):
                    raise _Impossible(f"replaces {name}, which is not there")
                table[name] = (
                    table.pop(source) if source is not None else _new(to.data_type, bool(to.nullable), to.default)
                )
            case ChangeColumn(name=name, to=to, classification=kind):
                if name not in table:
                    raise _Impossible(f"changes {name}, which is not there")
                table[name] = _changed(table[name], to, kind)
    return table


def _new(kind: Any, nullable: bool, default: Any) -> Played:
    return Played(None, generic(str(kind)), nullable, default)


def _changed(was: Played, to: Facets, kind: str) -> Played:
    changed = was
    if to.data_type is not KEPT:
        changed = replace(changed, generic=generic(str(to.data_type)))
    if to.nullable is not KEPT:
        changed = replace(changed, nullable=bool(to.nullable))
    if to.default is not KEPT:
        changed = replace(changed, default=None if to.default is None else str(to.default), defaulted=True)
    return replace(changed, remade=KEPT not in (to.data_type, to.nullable, to.default) and kind == "destructive")


def generic(kind: str) -> str:
    """A type without what the catalog's reader does not say: labels, and the name of what travels as text."""
    return re.sub(r"text_of<.*?>(?=>*$)", "text_of", re.sub(r"enum<.*?>(?=>*$)", "enum", kind))


def _differ(columns: dict[str, Played], before: Relation, now: Relation, same: Same) -> list[str]:
    truth = {column.name: column for column in now.columns}
    was = {column.num: column for column in before.columns} if now.rel == before.rel else {}
    wrong = [f"has no {name}, and nothing says so" for name in sorted(columns.keys() - truth.keys())]
    wrong += [f"has {name}, and nothing says so" for name in sorted(truth.keys() - columns.keys())]
    for name in sorted(columns.keys() & truth.keys()):
        mine, real = columns[name], truth[name]
        if was and not mine.remade and mine.origin != (real.num if real.num in was else None):
            wrong.append(f"{name} is column {real.num}, not {mine.origin}")
        if mine.generic != real.generic:
            wrong.append(f"{name} is {real.generic} ({real.shown}), not {mine.generic}")
        if real.nullable and not mine.nullable:
            wrong.append(f"{name} takes NULL, and nothing says so")
        old = was.get(real.num)
        if mine.nullable and not real.nullable and old is not None and not old.nullable:
            wrong.append(f"{name} takes no NULL, as before, and it is said to")
        wrong += _default(name, mine, real, same)
    return wrong


def _default(name: str, mine: Played, real: Truth, same: Same) -> list[str]:
    if not mine.defaulted or mine.default is None:
        return []
    if real.expression is None:
        return [f"{name} has no default, not {mine.default}"]
    if (
        mine.default in ("now()", "[]")
        or real.generic in ("text_of",)
        or same(mine.default, real.expression, real.shown)
    ):
        return []
    return [f"{name} has the default {real.expression}, not {mine.default}"]


def misread(
    before: Catalog, older: dict[tuple[Name, str], str | None], after: Catalog, result: Observation, same: Same
) -> list[str]:
    """New columns of which a row from before has another value than the migrations say, and nothing tells so."""
    wrong = []
    for name, relation in before.items():
        now = after.get(name)
        if now is None or now.rel != relation.rel or not any(table == name for table, _ in older):
            continue
        mine = [
            one.migration.operation for one in result.migrations if (one.migration.schema, one.migration.table) == name
        ]
        truth = {column.name: column for column in now.columns}
        for column, played in _played(relation, mine).items():
            if (name, column) not in older:
                continue  # that it is missing is told by the columns
            value, default = older[name, column], played.default
            # under the name that the column had then
            report = any(remark.table == ".".join(name) for remark in result.remarks)
            if played.origin is not None or played.defaulted or default == "now()" or (report and default is None):
                continue
            text = None if value is None else "'" + value.replace("'", "''") + "'"
            literal = "'{}'" if default == "[]" else default
            if literal != text and not (literal and text and same(literal, text, truth[column].shown)):
                wrong.append(f"{'.'.join(name)}: a row from before has {text} in {column}, not {literal}")
    return wrong
