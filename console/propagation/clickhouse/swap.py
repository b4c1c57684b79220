"""Columns that change names in ClickHouse, which forbids a chain of renames in one ALTER.

A chain that ends in a free name is renamed from its end, name by name, each with its views before the next: the name that
the table lacks tells how far it got. A ring takes two ALTERs: the first gives every column of it the
name `<new>__from_<old>` and puts an alias with the new meaning in its place, so that queries go from the old meaning to
the new one at one instant; the second drops the aliases and gives the columns their names. Between the two, inserts that
name the columns fail and are repeated by whoever inserts.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from console.errors import DataError
from console.propagation.clickhouse.dependents import checks
from console.propagation.clickhouse.dependents.anew import exchanged
from console.propagation.clickhouse.dependents.checks import Deed
from console.propagation.clickhouse.quoting import literal, qualified, quoted
from console.propagation.clickhouse.views import View, reads
from console.propagation.tables import Dependent, StoreColumn
from console.propagation.translate.operations import BETWEEN, MARK, StoreStatement

if TYPE_CHECKING:
    from console.propagation.clickhouse.statements import TableMigration


def on_its_way(old: str, new: str) -> str:
    return f"{new}{BETWEEN}{old}"


def groups(pairs: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The rings and chains of a swap, each for itself."""
    left = dict(pairs)
    while left:
        old = next((old for old in left if old not in left.values()), next(iter(left)))
        group: dict[str, str] = {}
        while old in left:
            group[old] = left.pop(old)
            old = group[old]
        yield group


@dataclass
class Swap:
    """One swap of one table.

    pairs  old name → new name
    """

    work: "TableMigration"
    pairs: Mapping[str, str]

    def steps(self) -> Iterator[StoreStatement]:
        """raises DataError"""
        names = {*self.pairs, *self.pairs.values()}
        checks.uncomputed(self.work.table, names, Deed.RENAMED.value)
        checks.unshown(self.work.table, names, Deed.RENAMED)
        for name in self.pairs:
            self.work.free(name)
            checks.unused(self.work.table, name, Deed.RENAMED)
        for group in groups(self.pairs):
            swap = Swap(self.work, group)
            yield from swap._ring() if set(group) == set(group.values()) else swap._chain()

    def _views(self) -> list[tuple[Dependent, View]]:
        found = []
        home = {on_its_way(old, new): new for old, new in self.pairs.items()}
        for view in self.work.views:
            # a star stands for the names that the columns are to have
            query = self.work.query(view, tuple(home.get(name, name) for name in self.work.in_star))
            names = {*self.pairs, *self.pairs.values(), *(on_its_way(old, new) for old, new in self.pairs.items())}
            if not any(query.reads(name) for name in names):
                continue
            if not query.row_by_row:
                raise DataError(
                    f"the view {view.name} joins or groups with columns that change names",
                    hint="drop the view, apply again, and make it anew under the new names",
                )
            found.append((view, query))
        return found

    def _chain(self) -> Iterator[StoreStatement]:
        table, views = self.work.table, self._views()
        names = self.names()
        present = [name in {column.name for column in table.columns} for name in names]
        if all(present):
            raise DataError(f"{table.name} has a column {names[0]} already", hint="drop or rename it first")
        if present.count(False) > 1:
            missing = [name for name, there in zip(names, present, strict=True) if not there][-1]
            raise DataError(f"{table.name} has no column {missing}", hint="console schema verify shows what differs")
        # exactly one name is free: those before it are renamed already, the views of the last of them perhaps not
        free = present.index(False)
        for rank in range(max(free - 1, 0), len(names) - 1):
            new, old = names[rank], names[rank + 1]
            if rank >= free:
                self.work.unread(table.name, (old,), f"renamed to {new}")
                yield self._rename(table.name, old, new)
            moved = []
            for view, query in views:
                found = yield from self.follow(view, query, old, new)
                moved.append(found)
            views = moved

    def names(self) -> list[str]:
        """The chain's names from the free one to the one that is given up."""
        before = {new: old for old, new in self.pairs.items()}
        names = [new for new in self.pairs.values() if new not in self.pairs]
        while names[-1] in before:
            names.append(before[names[-1]])
        return names

    def follow(
        self, view: Dependent, query: View, old: str, new: str
    ) -> Generator[StoreStatement, None, tuple[Dependent, View]]:
        """A view after one renaming of its source, and its target where that has the column under the same name."""
        if not query.reads(old):
            twin = self.work.twin(view)
            if twin is not None and replace(query, select=twin.select).reads(old):
                yield from self.work.replaced(view, view.select)
            return view, query
        columns = view.columns
        if view.target and old in query.carried(old) and old in {column.name for column in columns}:
            self._keyed(view, {old: new})
            taken = view.column(new)
            if taken is not None and taken.comment != self.work.mark_of_drop:
                raise DataError(f"{view.target} has a column {new} already", hint="drop or rename it first")
            self.work.unread(view.target, (old,), f"renamed to {new}")
            yield self._rename(view.target, old, new, over=taken is not None)
            columns = tuple(replace(c, name=new) if c.name == old else c for c in columns if c.name != new)
        select = query.renamed({old: new}, keep_outputs=False)
        yield from self.work.replaced(view, select)
        return replace(view, select=select, columns=columns), replace(query, select=select)

    @staticmethod
    def _rename(table: str, old: str, new: str, *, over: bool = False) -> StoreStatement:
        gone = f"DROP COLUMN {quoted(new)}, " if over else ""
        sql = f"ALTER TABLE {qualified(table)} {gone}RENAME COLUMN {quoted(old)} TO {quoted(new)}"
        return StoreStatement(sql, "metadata, no row is rewritten")

    def _keyed(self, view: Dependent, carried: Mapping[str, str]) -> None:
        below, names = self.work.under(view).table, {*carried, *carried.values()}
        checks.unshown(below, names, Deed.RENAMED)
        checks.uncomputed(below, names, Deed.RENAMED.value)
        for name in carried:
            checks.unused(below, name, Deed.RENAMED)
        if blocked := sorted(set(carried) & set(view.key)):
            raise DataError(
                f"{view.target} is ordered or partitioned by {blocked[0]}", hint="build a new table and switch to it"
            )

    def _ring(self) -> Iterator[StoreStatement]:
        source = self.work.table
        state = self.state(source.columns)
        views = self._views()
        if state == "before":
            self._same_meaning([view for view, _ in views])
            self._whole(views)
            yield self._aside(source.name, source.columns)
        for view in self.work.targets([view for view, _ in views]):
            yield from self._target(view)
        between = {new: on_its_way(old, new) for old, new in self.pairs.items()}
        back = {aside: name for name, aside in between.items()}
        if state != "after":
            for view, query in views:
                aside = query.renamed(between, keep_outputs=True)
                yield from self.work.replaced(view, aside)
            yield self._home(source.name)
        for view, query in views:
            plain = query.renamed(back, keep_outputs=True)
            if state == "after":
                twin = self.work.twin(view)
                either = [query, *([replace(query, select=twin.select)] if twin is not None else [])]
                if any(
                    one.reads(aside) for one in either for aside in back
                ):  # else what stands beside it is another ring's
                    yield from self.work.replaced(view, plain)
            else:
                # the view back to the columns' own names, once they have them: its twin is gone by then
                yield from exchanged(view, plain)

    def _same_meaning(self, views: list[Dependent]) -> None:
        """raises  DataError for a view that would go on under both names, and put new values with old ones, or fail"""
        for view in views:
            for lower in view.below.dependents if view.below is not None else ():
                if column := reads(lower.name, lower.select, {view.target, view.name}, self.pairs):
                    raise DataError(
                        f"the view {lower.name} reads {view.target}.{column}, which is to change places",
                        hint=f"make {lower.name} anew without {column} first, then apply again",
                    )
        types = {column.type for column in self.work.table.columns if column.name in self.pairs}
        if len(types) > 1:
            for table in (self.work.table.name, *(view.target for view in views)):
                self.work.unread(table, self.pairs, "of another type: a view keeps the types that its columns had")

    def _whole(self, views: list[tuple[Dependent, View]]) -> None:
        """raises  DataError for a view that hands on a part of the ring to a target that has all of it"""
        for view, query in views:
            if not set(self.pairs) <= {column.name for column in view.columns}:
                continue
            handed = {name for name in self.pairs if set(query.carried(name)) & set(self.pairs)}
            if handed and (left := sorted(set(self.pairs) - handed)):
                raise DataError(
                    f"the view {view.name} hands on {sorted(handed)[0]}, and not {left[0]}, with which it changes places:"
                    f" its values would reach {view.target} no longer",
                    hint=f"hand on all of {', '.join(sorted(self.pairs))} in {view.name}, or none of them, then apply again",
                )

    def _target(self, view: Dependent) -> Iterator[StoreStatement]:
        """The target swaps too where the view hands on the whole ring under its own names."""
        names = {column.name for column in view.columns}
        asides = {on_its_way(old, new) for old, new in self.pairs.items()}
        if not (set(self.pairs) <= names or asides <= names):
            held = ", ".join(sorted(set(self.pairs) & names)) or "none of them"
            self.work.warnings.append(
                f"{view.target} holds {held} of the swapped columns: its older rows stay as they are"
            )
            return
        self._keyed(view, self.pairs)
        state = self.state(view.columns)
        if state == "before":
            yield self._aside(view.target, view.columns)
        if state != "after":
            yield self._home(view.target)

    def state(self, columns: tuple[StoreColumn, ...]) -> str:
        """`before`, `between` or `after`; a mark in the comments tells the first from the last."""
        found = {column.name: column for column in columns}
        if all(on_its_way(old, new) in found for old, new in self.pairs.items()):
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

    def _aside(self, table: str, columns: tuple[StoreColumn, ...]) -> StoreStatement:
        types = {column.name: column.type for column in columns}
        parts = [f"RENAME COLUMN {quoted(old)} TO {quoted(on_its_way(old, new))}" for old, new in self.pairs.items()]
        parts += [
            f"ADD COLUMN {quoted(new)} {types[old]} ALIAS {quoted(on_its_way(old, new))}"
            for old, new in self.pairs.items()
        ]
        mark = literal(self._mark)
        parts += [f"COMMENT COLUMN {quoted(on_its_way(old, new))} {mark}" for old, new in self.pairs.items()]
        why = "queries read the new meaning from here on; inserts wait"
        return StoreStatement(f"ALTER TABLE {qualified(table)} {', '.join(parts)}", why)

    def _home(self, table: str) -> StoreStatement:
        parts = [f"DROP COLUMN {quoted(new)}" for new in self.pairs.values()]
        parts += [f"RENAME COLUMN {quoted(on_its_way(old, new))} TO {quoted(new)}" for old, new in self.pairs.items()]
        return StoreStatement(f"ALTER TABLE {qualified(table)} {', '.join(parts)}", "the columns have their names")
