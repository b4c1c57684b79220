"""The query of a ClickHouse materialized view, read and edited as a tree.

Only views that pass on rows one by one can be edited: one table, no grouping, no window, no LIMIT, no columns chosen by a
pattern. The others are left to the operator. A query that cannot be parsed counts as reading every name in its text.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlglot
from sqlglot import exp

DIALECT = "clickhouse"
_NOT_ROW_BY_ROW = ("group", "having", "distinct", "limit", "offset", "joins", "laterals", "qualify", "with", "with_")


@dataclass(frozen=True)
class View:
    """One view's query over a table with these columns."""

    select: str
    columns: tuple[str, ...]

    @cached_property
    def tree(self) -> exp.Select | None:
        """None for anything but a plain SELECT."""
        parsed = _parsed(self.select)
        return parsed if isinstance(parsed, exp.Select) else None

    @cached_property
    def row_by_row(self) -> bool:
        tree = self.tree
        if tree is None or any(tree.args.get(part) for part in _NOT_ROW_BY_ROW) or any(map(_opaque, tree.expressions)):
            return False
        return not (
            tree.find(exp.AggFunc, exp.Window, exp.Subquery, exp.Explode) or len(list(tree.find_all(exp.Select))) > 1
        )

    @cached_property
    def simple(self) -> bool:
        """One SELECT from one table, grouped or not, whose columns are written out or a plain star."""
        tree = self.tree
        if tree is None or tree.args.get("joins") or tree.args.get("laterals") or any(map(_opaque, tree.expressions)):
            return False
        return not tree.find(exp.Subquery, exp.With, exp.Explode) and len(list(tree.find_all(exp.Select))) == 1

    @cached_property
    def outputs(self) -> tuple[tuple[str, exp.Expression], ...]:
        """(name in the target, expression), plain stars written out."""
        outputs: list[tuple[str, exp.Expression]] = []
        for item in self.tree.expressions if self.tree is not None else ():
            if item.is_star and not _opaque(item):
                left_out = {name.name for name in _except(item)}
                outputs += [(name, exp.column(name)) for name in self.columns if name not in left_out]
            else:
                outputs.append((item.alias_or_name, item))
        return tuple(outputs)

    def reads(self, column: str) -> bool:
        """The query mentions the column, also through a star; for anything but a plain SELECT, any mention counts."""
        if self.tree is None:
            return _mentions(_parsed(self.select), self.select, column)
        if any(map(_opaque, self.tree.expressions)):
            return True
        named = any(node.name == column for node in self.tree.find_all(exp.Column))
        return named or any(name == column for name, _ in self.outputs)

    def outputs_of(self, column: str) -> tuple[str, ...]:
        """The outputs that are the column itself, under any name."""
        return tuple(name for name, item in self.outputs if _bare(item) == column)

    def computes_with(self, column: str) -> bool:
        """The query uses the column for more than passing it on."""
        if self.tree is None:
            return True
        passed_on = sum(len(list(item.find_all(exp.Column))) for _, item in self.outputs if _bare(item) == column)
        uses = sum(node.name == column for item in self._parts() for node in item.find_all(exp.Column))
        return uses > passed_on

    def _parts(self) -> list[exp.Expression]:
        assert self.tree is not None
        others = [
            self.tree.args[key] for key in ("where", "prewhere", "order", "having", "group") if self.tree.args.get(key)
        ]
        return [*(item for _, item in self.outputs), *others]

    def mirrors(self, columns: Sequence[str]) -> bool:
        """The query passes on every one of these columns, row by row."""
        return self.row_by_row and all(self.outputs_of(column) for column in columns)

    def with_column(self, column: str) -> str:
        return self._select([*self.outputs, (column, exp.column(exp.to_identifier(column, quoted=True)))])

    def without(self, column: str) -> str:
        return self._select([(name, item) for name, item in self.outputs if _bare(item) != column])

    def renamed(self, names: Mapping[str, str], *, keep_outputs: bool) -> str:
        """Every mention of a column under its new name.

        keep_outputs  the target's names stay; else those that were the column's own change with it
        """
        outputs: list[tuple[str, exp.Expression]] = []
        for name, item in self.outputs:
            new: Any = _renamed(item, names)
            if keep_outputs and new.alias_or_name != name:
                new = exp.alias_(new, name, quoted=True)
            elif isinstance(new, exp.Alias) and _bare(new) == new.alias:
                new = new.this
            outputs.append((new.alias_or_name, new))
        return self._select(outputs, names)

    def _select(self, outputs: Sequence[tuple[str, exp.Expression]], names: Mapping[str, str] | None = None) -> str:
        assert self.tree is not None
        tree = self.tree.copy()
        tree.set("expressions", [item.copy() for _, item in outputs])
        for key in ("where", "prewhere", "order"):
            if names and tree.args.get(key):
                tree.set(key, _renamed(tree.args[key], names))
        return tree.sql(dialect=DIALECT)


def reads(view: str, select: str, tables: Collection[str], columns: Collection[str]) -> str:
    """The first of a table's columns that a plain view reads, also through a star; "" where it reads none.

    view    qualified; an unqualified name in the query is in the view's own database
    tables  every name under which the table is read, qualified: its own, and those of the views that write into it
    """
    tree = _parsed(select)
    if tree is None:
        named = any(_named(select, table.rpartition(".")[2]) for table in tables)
        return next((column for column in sorted(columns) if named and _mentions(None, select, column)), "")
    here = view.partition(".")[0]
    mine = [node for node in tree.find_all(exp.Table) if f"{node.db or here}.{node.name}" in tables]
    known = {node.alias_or_name for node in mine}
    for node in tree.find_all(exp.Column) if mine else ():
        if node.name in columns and (not node.table or node.table in known) and not node.find_ancestor(exp.Star):
            return str(node.name)
    for source in mine:
        query = source.find_ancestor(exp.Select)
        for item in query.expressions if query is not None else ():
            plain = item.is_star and not _opaque(item)
            if _opaque(item) or (plain and (not isinstance(item, exp.Column) or item.table in known)):
                left_out = {name.name for name in _except(item)} if plain else ()
                if column := next((column for column in sorted(columns) if column not in left_out), ""):
                    return column
    return ""


def _parsed(select: str) -> Any:
    """A query as a tree of sqlglot's; None where it cannot be parsed."""
    try:
        return sqlglot.parse_one(select, read=DIALECT)
    except sqlglot.errors.SqlglotError:
        return None


def _mentions(tree: Any, select: str, column: str) -> bool:
    """A query can read a column by its name, by a star or by a pattern, and in no other way."""
    if tree is None:
        return _named(select, column) or "*" in select or _named(select.lower(), "columns")
    stars = any(any(map(_opaque, one.expressions)) or one.is_star for one in tree.find_all(exp.Select))
    return stars or any(node.name == column for node in tree.find_all(exp.Column))


def _named(select: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", select) is not None


def _opaque(item: exp.Expression) -> bool:
    """Columns that are chosen or changed without being written out: `* REPLACE`, `* APPLY`, `COLUMNS('…')`."""
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        plain = all(isinstance(name, exp.Column | exp.Identifier) for name in _except(item))
        return not plain or any(star.args.get(part) for part in ("replace", "rename"))
    return any(
        isinstance(node, exp.Columns)
        or (isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count))
        or (isinstance(node, exp.Anonymous) and node.name.lower() == "columns")
        for node in item.find_all(exp.Columns, exp.Star, exp.Anonymous)
    )


def _except(item: exp.Expression) -> Sequence[exp.Expression]:
    star = item.this if isinstance(item, exp.Column) else item
    return star.args.get("except_") or star.args.get("except") or ()


def same(one: str, other: str) -> bool:
    """Two queries that differ in quotes and layout alone."""
    return _normal(one) == _normal(other)


def _normal(select: str) -> str:
    tree = _parsed(select)
    if tree is None:
        return " ".join(select.split())
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", True)
    return str(tree.sql(dialect=DIALECT))


def _bare(item: exp.Expression) -> str:
    """The column that an output is, under any name; "" for an expression."""
    inner = item.this if isinstance(item, exp.Alias) else item
    return inner.name if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star) else ""


def _renamed(item: exp.Expression, names: Mapping[str, str]) -> exp.Expression:
    copied = item.copy()
    for node in list(copied.find_all(exp.Column)):
        if node.name in names:
            node.this.replace(exp.to_identifier(names[node.name], quoted=True))
    return copied
