"""Reads and forward queries: SQL over an existing table's columns instead of its sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp

from console.errors import Problem
from console.model.landing import is_reserved, numbered_name
from console.model.live import TableState
from console.model.schema import Column, Table, types
from console.planning.sql.aggregates import STORED
from console.planning.sql.resolve import qualified, schema
from console.planning.sql.semantics.functions import aggregates, generates, windows
from console.planning.sql.syntax import roundtrip
from console.planning.sql.tree import DIALECT, Text, cast, kind, name, parse, render

_LATER = "later"
_FORBIDDEN = (
    "from_", "joins", "laterals", "where", "group", "having", "distinct", "order", "limit", "offset", "qualify", "windows",
    "with_",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One logical column, by one of `of`, `literal` and `computed`.

    of       an older logical column;  literal, computed  SQL, the latter over older logical columns
    type     to which it is cast, "" not to be cast
    fresh    an aggregate's column with kept states and a changed read
    """

    name: str
    of: str = ""
    literal: str = ""
    type: str = ""
    fresh: bool = False
    computed: str = ""


def compose(read: str, picks: tuple[Pick, ...], wanted: str) -> str:
    """A new read over the same stored table, from its previous read and, for fresh columns, the wanted one."""
    tree = sqlglot.parse_one(read, read=DIALECT)
    old = _projections(tree)
    if fresh := {pick.of.lower() for pick in picks if pick.fresh}:
        new = projections(wanted)
        old |= {column: new[column] for column in fresh}
    tree.set("expressions", [exp.alias_(_picked(pick, old), name(pick.name)) for pick in picks])
    return render(tree)


def projections(read: str) -> dict[str, exp.Expr]:
    """Column in lower case → its expression in a read."""
    return _projections(sqlglot.parse_one(read, read=DIALECT))


def _projections(tree: exp.Expr) -> dict[str, exp.Expr]:
    return {part.alias_or_name.lower(): part.unalias() for part in tree.expressions}


def is_flag(stored: str) -> bool:
    """Whether a stored column tells rows that came after files taken over from those in them (`history: from now`)."""
    return stored.startswith(numbered_name(_LATER, 0)[:-1]) and is_reserved(stored)


def flag(number: int) -> str:
    return numbered_name(_LATER, number)


def in_later_rows(shown: exp.Expr) -> exp.Column | None:
    """The stored column that a flagged column shows in later rows; None for others."""
    if not isinstance(shown, exp.If) or not is_flag(shown.this.unnest().name):
        return None
    place = shown.args["true"].unnest()
    return place if isinstance(place, exp.Column) else None


def select(table: str, picks: Sequence[Pick], conditions: Sequence[str] = ()) -> str:
    """The same over a view with the table's name, for a forward copy. conditions: SQL over older logical columns"""
    chosen = [exp.alias_(_picked(pick), name(pick.name)) for pick in picks]
    rows = exp.select(*chosen).from_(exp.Table(this=name(table)))
    return render(rows.where(*(sqlglot.parse_one(condition, read=DIALECT) for condition in conditions)))


def stored(table: str, columns: Sequence[Column]) -> str:
    """Stored columns unchanged, over a view with the table's name."""
    return render(exp.select(*(exp.column(name(c.name)) for c in columns)).from_(exp.Table(this=name(table))))


def landing_read(columns: Sequence[Column], extra: Sequence[str] = ()) -> str:
    return _landing_read((*(column.name for column in columns), *extra))


@lru_cache(maxsize=4096)
def _landing_read(names: tuple[str, ...]) -> str:
    return render(exp.select(*(exp.column(name(n)) for n in names)).from_(exp.to_table(STORED)))


def _picked(pick: Pick, old: Mapping[str, exp.Expr] | None = None) -> exp.Expr:
    """The pick's expression; `old`: expressions of older columns, None for their names."""

    def read(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or old is None:
            return node
        return exp.Paren(this=old[node.name.lower()].copy())

    if pick.of:
        value = exp.column(name(pick.of)) if old is None else old[pick.of.lower()].copy()
    elif pick.computed:
        value = sqlglot.parse_one(pick.computed, read=DIALECT).transform(read)
    else:
        value = sqlglot.parse_one(pick.literal, read=DIALECT)
    return cast(value, pick.type) if pick.type else value


def forward(table: Table, live: TableState) -> tuple[str, tuple[Problem, ...]]:
    """The operator's `forward_query` as a whole query over the live table; "" and problems if it is not one."""
    written = table.forward_query.strip().rstrip(",")
    whole = written if written[:6].upper() == "SELECT" else f"SELECT {written}"
    text = Text(sql=whole, where="", node=table.name)
    sql = _forward(table, live, text)
    return sql, tuple(
        replace(problem, where=table.where, message=f"forward_query of {table.name}: {problem.message}")
        for problem in text.problems
    )


def _row_by_row(tree: exp.Select, text: Text) -> bool:
    """Whether each row yields one row: a copy runs in batches, so anything over several rows would be computed per batch."""
    for part in tree.expressions:
        if aggregates(part) or windows(part) or part.find(exp.Query) is not None:
            what = "aggregates, uses a window or asks another query"
        elif generates(part):
            what = "makes any number of rows"
        else:
            continue
        text.report(
            "C107", f"{render(part)} {what}: each row of the live table gives one row", part, "compute it per row"
        )
        return False
    return True


def _forward(table: Table, live: TableState, text: Text) -> str:
    tree = parse(text)
    if tree is None:
        return ""
    if not isinstance(tree, exp.Select) or any(tree.args.get(key) for key in _FORBIDDEN):
        text.report_query(
            "C107",
            "it must be the SELECT list alone",
            fix="leave out FROM, WHERE and everything else: it reads the live table",
        )
        return ""
    if not _row_by_row(tree, text):
        return ""
    roundtrip.check(text)
    tree.set("from_", exp.From(this=exp.Table(this=name(table.name))))
    known = {table.name: types(live.table.columns)}
    done = qualified(tree, text, known, schema(known))
    if done is None:
        return ""
    given = {part.alias_or_name.lower(): part.unalias() for part in done.selects}
    declared = {column.name.lower() for column in table.columns}
    if missing := [c.name for c in table.columns if c.name.lower() not in given]:
        text.report_query(
            "C106", f"it does not compute {', '.join(missing)}", fix="one expression for every declared column"
        )
    if extra := [column for column in given if column not in declared]:
        text.report_query(
            "C106", f"{', '.join(extra)} is not declared", fix="name expressions by the declared columns: `… AS name`"
        )
    if text.problems:
        return ""
    was = {column.name.lower(): kind(column.type) for column in live.table.columns}
    chosen = []
    for column in table.columns:
        value = given[column.name.lower()]
        same = isinstance(value, exp.Column) and was.get(value.name.lower()) == kind(column.type)
        chosen.append(exp.alias_(value.copy() if same else cast(value.copy(), column.type), name(column.name)))
    done.set("expressions", chosen)
    return render(done)
