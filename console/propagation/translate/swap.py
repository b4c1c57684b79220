"""Columns that change names in ClickHouse, which forbids a chain of renames in one ALTER.

A chain that ends in a free name is renamed from its end. A ring takes two ALTERs: the first gives every column of it the
name `<new>__from_<old>` and puts an alias with the new meaning in its place, so that queries go from the old meaning to
the new one at one instant; the second drops the aliases and gives the columns their names. Between the two, inserts that
name the columns fail and are repeated by whoever inserts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.errors import DataError
from console.propagation.tables import Dependent, StoreColumn
from console.propagation.translate.operations import BETWEEN, MARK, Statement
from console.propagation.translate.views import View, qualified, quoted

if TYPE_CHECKING:
    from console.propagation.translate.clickhouse import Work


def _between(old: str, new: str) -> str:
    return f"{new}{BETWEEN}{old}"


@dataclass
class Swap:
    """One swap of one table.

    pairs  old name → new name
    """

    work: "Work"
    pairs: Mapping[str, str]

    def steps(self) -> Iterator[Statement]:
        """raises DataError"""
        for name in self.pairs:
            self.work.free(name)
        ring = set(self.pairs) == set(self.pairs.values())
        yield from self._ring() if ring else self._chain()

    def _views(self) -> list[tuple[Dependent, View]]:
        found = []
        for view in self.work.views:
            query = View(
                view.select, tuple(column.name for column in self.work.table.columns if column.kind != "ALIAS")
            )
            names = {*self.pairs, *self.pairs.values(), *(_between(old, new) for old, new in self.pairs.items())}
            if not any(query.reads(name) for name in names):
                continue
            if not query.row_by_row:
                raise DataError(
                    f"the view {view.name} joins or groups with columns that change names",
                    hint="drop the view, apply again, and make it anew under the new names",
                )
            found.append((view, query))
        return found

    def _chain(self) -> Iterator[Statement]:
        table = self.work.table
        yield from self._renames(table.name, {column.name for column in table.columns})
        for view, query in self._views():
            carried = {old: new for old, new in self.pairs.items() if old in query.carried(old)}
            has = {column.name for column in view.columns}
            if view.target and any(old in has for old in carried):
                self._keyed(view, carried)
                yield from self._renames(view.target, has)
            yield from self.work.replaced(view, query.renamed(self.pairs, keep_outputs=False))

    def _keyed(self, view: Dependent, carried: Mapping[str, str]) -> None:
        if blocked := sorted(set(carried) & set(view.key)):
            raise DataError(f"{view.target} is ordered by {blocked[0]}", hint="build a new table and switch to it")

    def _renames(self, table: str, has: set[str]) -> Iterator[Statement]:
        """From the free end: each rename finds its new name free, and the gap tells how far it got."""
        ends = [new for new in self.pairs.values() if new not in self.pairs]
        before = {new: old for old, new in self.pairs.items()}
        for end in ends:
            chain = [end]
            while chain[-1] in before:
                chain.append(before[chain[-1]])
            present = [name in has for name in chain]
            if all(present):
                raise DataError(f"{table} has a column {end} already", hint="drop or rename it first")
            # exactly one name of the chain is free: what is renamed already lies before it
            free = present.index(False)
            for new, old in zip(chain[free:], chain[free + 1 :], strict=False):
                if old in has:
                    sql = f"ALTER TABLE {qualified(table)} RENAME COLUMN {quoted(old)} TO {quoted(new)}"
                    yield Statement(sql, "metadata, no row is rewritten")

    def _ring(self) -> Iterator[Statement]:
        source = self.work.table
        state = self._state(source.columns)
        views = self._views()
        if state == "before":
            yield self._aside(source.name, source.columns)
        for view in self.work.targets([view for view, _ in views]):
            yield from self._target(view)
        between = {new: _between(old, new) for old, new in self.pairs.items()}
        back = {aside: name for name, aside in between.items()}
        if state != "after":
            for view, query in views:
                aside = query.renamed(between, keep_outputs=True)
                yield from self.work.replaced(view, aside)
            yield self._home(source.name)
        for view, query in views:
            plain = query.renamed(back, keep_outputs=True)
            if state == "after":
                yield from self.work.replaced(view, plain)
            else:
                yield from self._again(view, plain)

    def _target(self, view: Dependent) -> Iterator[Statement]:
        """The target swaps too where the view hands on the whole ring under its own names."""
        names = {column.name for column in view.columns}
        asides = {_between(old, new) for old, new in self.pairs.items()}
        if not (set(self.pairs) <= names or asides <= names):
            held = ", ".join(sorted(set(self.pairs) & names)) or "none of them"
            self.work.warnings.append(
                f"{view.target} holds {held} of the swapped columns: its older rows stay as they are"
            )
            return
        self._keyed(view, self.pairs)
        state = self._state(view.columns)
        if state == "before":
            yield self._aside(view.target, view.columns)
        if state != "after":
            yield self._home(view.target)

    def _again(self, view: Dependent, plain: str) -> Iterator[Statement]:
        """The view back to the columns' own names, once they have them: its twin is gone by then."""
        from console.propagation.translate.clickhouse import NEXT

        name, beside = qualified(view.name), qualified(view.name + NEXT)
        sql = f"CREATE MATERIALIZED VIEW {beside} TO {qualified(view.target)} AS {plain}"
        yield Statement(sql, "the query by the columns' own names again")
        yield Statement(f"EXCHANGE TABLES {name} AND {beside}", "the two change names at one instant")
        yield Statement(f"DROP VIEW IF EXISTS {beside}", f"the former query of {view.name} goes")

    def _state(self, columns: tuple[StoreColumn, ...]) -> str:
        """`before`, `between` or `after`; a mark in the comments tells the first from the last."""
        found = {column.name: column for column in columns}
        if all(_between(old, new) in found for old, new in self.pairs.items()):
            return "between"
        if missing := sorted(set(self.pairs) - set(found)):
            raise DataError(
                f"{self.work.table.name} has no column {missing[0]}", hint="console schema verify shows how"
            )
        marked = all(self._mark in found[name].comment for name in self.pairs)
        return "after" if marked else "before"

    @property
    def _mark(self) -> str:
        return f"{MARK}{self.work.mark}"

    def _aside(self, table: str, columns: tuple[StoreColumn, ...]) -> Statement:
        types = {column.name: column.type for column in columns}
        parts = [f"RENAME COLUMN {quoted(old)} TO {quoted(_between(old, new))}" for old, new in self.pairs.items()]
        parts += [
            f"ADD COLUMN {quoted(new)} {types[old]} ALIAS {quoted(_between(old, new))}"
            for old, new in self.pairs.items()
        ]
        mark = self._mark.replace("\\", "\\\\").replace("'", "\\'")
        parts += [f"COMMENT COLUMN {quoted(_between(old, new))} '{mark}'" for old, new in self.pairs.items()]
        why = "queries read the new meaning from here on; inserts wait"
        return Statement(f"ALTER TABLE {qualified(table)} {', '.join(parts)}", why)

    def _home(self, table: str) -> Statement:
        parts = [f"DROP COLUMN {quoted(new)}" for new in self.pairs.values()]
        parts += [f"RENAME COLUMN {quoted(_between(old, new))} TO {quoted(new)}" for old, new in self.pairs.items()]
        return Statement(f"ALTER TABLE {qualified(table)} {', '.join(parts)}", "the columns have their names")
