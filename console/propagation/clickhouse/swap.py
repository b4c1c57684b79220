"""Renamed columns in ClickHouse, which forbids a chain of renames in one ALTER.

A chain that ends in a free name is renamed from its end, name by name, each with its views before the next: the name that
the table lacks shows the progress. A ring takes two ALTERs. The first renames every column to `<new>__from_<old>` and puts
an alias for it under the new name, so that queries switch from the old columns to the new ones atomically; the second drops the
aliases and gives the columns their final names. Between the two, inserts that name the columns fail, and the consumer
retries them.
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace

from console.errors import DataError
from console.propagation.clickhouse.dependents import checks
from console.propagation.clickhouse.dependents.checks import ColumnEffect
from console.propagation.clickhouse.dependents.recreate import exchanged
from console.propagation.clickhouse.quoting import literal, qualified, quoted
from console.propagation.clickhouse.table_migration import TableMigration
from console.propagation.clickhouse.views import View, reads
from console.propagation.tables import Dependent, StoreColumn
from console.propagation.translate.operations import BETWEEN, MARK, StoreStatement


def interim_name(old: str, new: str) -> str:
    return f"{new}{BETWEEN}{old}"


def groups(pairs: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The rings and chains of a swap, one by one."""
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

    work: TableMigration
    pairs: Mapping[str, str]

    def steps(self) -> Iterator[StoreStatement]:
        """raises DataError"""
        names = {*self.pairs, *self.pairs.values()}
        checks.refuse_computed(self.work.table, names, ColumnEffect.RENAMED.value)
        checks.refuse_shown(self.work.table, names, ColumnEffect.RENAMED)
        for name in self.pairs:
            self.work.refuse_key(name)
            checks.refuse_used(self.work.table, name, ColumnEffect.RENAMED)
        for group in groups(self.pairs):
            swap = Swap(self.work, group)
            yield from swap._ring() if set(group) == set(group.values()) else swap._chain()

    def _views(self) -> list[tuple[Dependent, View]]:
        views = []
        home = {interim_name(old, new): new for old, new in self.pairs.items()}
        for view in self.work.views:
            # a star stands for the final names of the columns
            query = self.work.query(view, tuple(home.get(name, name) for name in self.work.in_star))
            names = {*self.pairs, *self.pairs.values(), *(interim_name(old, new) for old, new in self.pairs.items())}
            if not any(query.reads(name) for name in names):
                continue
            if not query.row_by_row:
                raise DataError(
                    f"the view {view.name} joins or groups with columns that change names",
                    hint="drop the view, apply again, and recreate it under the new names",
                )
            views.append((view, query))
        return views

    def _chain(self) -> Iterator[StoreStatement]:
        table, views = self.work.table, self._views()
        names = self.names()
        present = [name in {column.name for column in table.columns} for name in names]
        if all(present):
            raise DataError(f"{table.name} has a column {names[0]} already", hint="drop or rename it first")
        if present.count(False) > 1:
            missing = [name for name, there in zip(names, present, strict=True) if not there][-1]
            raise DataError(f"{table.name} has no column {missing}", hint="console schema verify shows what differs")
        # exactly one name is free: those before it are renamed already, except perhaps in the views of the last one
        free = present.index(False)
        for rank in range(max(free - 1, 0), len(names) - 1):
            new, old = names[rank], names[rank + 1]
            if rank >= free:
                self.work.refuse_read(table.name, (old,), f"renamed to {new}")
                yield self._rename(table.name, old, new)
            moved = []
            for view, query in views:
                followed = yield from self.follow(view, query, old, new)
                moved.append(followed)
            views = moved

    def names(self) -> list[str]:
        """The chain's names, from the free one to the one that becomes free."""
        before = {new: old for old, new in self.pairs.items()}
        names = [new for new in self.pairs.values() if new not in self.pairs]
        while names[-1] in before:
            names.append(before[names[-1]])
        return names

    def follow(
        self, view: Dependent, query: View, old: str, new: str
    ) -> Generator[StoreStatement, None, tuple[Dependent, View]]:
        """Rename a column in a view after its source, and in the view's target if it has the column under the same name."""
        if not query.reads(old):
            twin = self.work.twin(view)
            if twin is not None and replace(query, select=twin.select).reads(old):
                yield from self.work.replaced(view, view.select)
            return view, query
        columns = view.columns
        if view.target and old in query.outputs_of(old) and old in {column.name for column in columns}:
            self._refuse_target(view, {old: new})
            taken = view.column(new)
            if taken is not None and taken.comment != self.work.mark_of_drop:
                raise DataError(f"{view.target} has a column {new} already", hint="drop or rename it first")
            self.work.refuse_read(view.target, (old,), f"renamed to {new}")
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

    def _refuse_target(self, view: Dependent, names_there: Mapping[str, str]) -> None:
        below, names = self.work.under(view).table, {*names_there, *names_there.values()}
        checks.refuse_shown(below, names, ColumnEffect.RENAMED)
        checks.refuse_computed(below, names, ColumnEffect.RENAMED.value)
        for name in names_there:
            checks.refuse_used(below, name, ColumnEffect.RENAMED)
        if blocked := sorted(set(names_there) & set(view.key)):
            raise DataError(
                f"{view.target} is ordered or partitioned by {blocked[0]}", hint="build a new table and switch to it"
            )

    def _ring(self) -> Iterator[StoreStatement]:
        source = self.work.table
        state = self.state(source.columns)
        views = self._views()
        if state == "before":
            self._refuse_stale_readers([view for view, _ in views])
            self._refuse_partial(views)
            yield self._to_interim(source.name, source.columns)
        for view in self.work.targets([view for view, _ in views]):
            yield from self._target(view)
        between = {new: interim_name(old, new) for old, new in self.pairs.items()}
        back = {interim: name for name, interim in between.items()}
        if state != "after":
            for view, query in views:
                yield from self.work.replaced(view, query.renamed(between, keep_outputs=True))
            yield self._to_final(source.name)
        for view, query in views:
            plain = query.renamed(back, keep_outputs=True)
            if state == "after":
                twin = self.work.twin(view)
                either = [query, *([replace(query, select=twin.select)] if twin is not None else [])]
                # otherwise the view beside it belongs to another ring
                if any(one.reads(interim) for one in either for interim in back):
                    yield from self.work.replaced(view, plain)
            else:
                # the view returns to the final names, once the columns have them: its twin is dropped by then
                yield from exchanged(view, plain)

    def _refuse_stale_readers(self, views: list[Dependent]) -> None:
        """raises  DataError for a view that would keep reading both names, and mix new values with old ones, or fail"""
        for view in views:
            for lower in view.below.dependents if view.below is not None else ():
                if column := reads(lower.name, lower.select, {view.target, view.name}, self.pairs):
                    raise DataError(
                        f"the view {lower.name} reads {view.target}.{column}, which is to change places",
                        hint=f"recreate {lower.name} without {column} first, then apply again",
                    )
        types = {column.type for column in self.work.table.columns if column.name in self.pairs}
        if len(types) > 1:
            for table in (self.work.table.name, *(view.target for view in views)):
                self.work.refuse_read(table, self.pairs, "of another type: a view keeps the types that its columns had")

    def _refuse_partial(self, views: list[tuple[Dependent, View]]) -> None:
        """raises  DataError for a view that passes on a part of the ring to a target that has all of it"""
        for view, query in views:
            if not set(self.pairs) <= {column.name for column in view.columns}:
                continue
            handed = {name for name in self.pairs if set(query.outputs_of(name)) & set(self.pairs)}
            if handed and (left := sorted(set(self.pairs) - handed)):
                raise DataError(
                    f"the view {view.name} passes on {sorted(handed)[0]}, but not {left[0]}, with which it is swapped:"
                    f" its values would no longer reach {view.target}",
                    hint=f"pass on all of {', '.join(sorted(self.pairs))} in {view.name}, or none of them, then apply again",
                )

    def _target(self, view: Dependent) -> Iterator[StoreStatement]:
        """The target swaps too if the view passes on the whole ring under its own names."""
        names = {column.name for column in view.columns}
        interims = {interim_name(old, new) for old, new in self.pairs.items()}
        if not (set(self.pairs) <= names or interims <= names):
            present = ", ".join(sorted(set(self.pairs) & names)) or "none of them"
            self.work.warnings.append(
                f"{view.target} holds {present} of the swapped columns: its older rows stay unchanged"
            )
            return
        self._refuse_target(view, self.pairs)
        state = self.state(view.columns)
        if state == "before":
            yield self._to_interim(view.target, view.columns)
        if state != "after":
            yield self._to_final(view.target)

    def state(self, columns: tuple[StoreColumn, ...]) -> str:
        """`before`, `between` or `after`; a mark in the comments distinguishes the first from the last."""
        by_name = {column.name: column for column in columns}
        if all(interim_name(old, new) in by_name for old, new in self.pairs.items()):
            return "between"
        if missing := sorted(set(self.pairs) - set(by_name)):
            raise DataError(
                f"{self.work.table.name} has no column {missing[0]}", hint="console schema verify shows how"
            )
        marked = all(self._mark in by_name[name].comment for name in self.pairs)
        return "after" if marked else "before"

    @property
    def _mark(self) -> str:
        return f"{MARK}{self.work.mark}"

    def _to_interim(self, table: str, columns: tuple[StoreColumn, ...]) -> StoreStatement:
        types = {column.name: column.type for column in columns}
        parts = [f"RENAME COLUMN {quoted(old)} TO {quoted(interim_name(old, new))}" for old, new in self.pairs.items()]
        parts += [
            f"ADD COLUMN {quoted(new)} {types[old]} ALIAS {quoted(interim_name(old, new))}"
            for old, new in self.pairs.items()
        ]
        mark = literal(self._mark)
        parts += [f"COMMENT COLUMN {quoted(interim_name(old, new))} {mark}" for old, new in self.pairs.items()]
        why = "queries read the new columns from here on; inserts wait"
        return StoreStatement(f"ALTER TABLE {qualified(table)} {', '.join(parts)}", why)

    def _to_final(self, table: str) -> StoreStatement:
        parts = [f"DROP COLUMN {quoted(new)}" for new in self.pairs.values()]
        parts += [f"RENAME COLUMN {quoted(interim_name(old, new))} TO {quoted(new)}" for old, new in self.pairs.items()]
        return StoreStatement(f"ALTER TABLE {qualified(table)} {', '.join(parts)}", "the columns get their final names")
