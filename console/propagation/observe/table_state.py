"""One table as the files read so far define it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from console.propagation.sql.columns import GENERATED, Check, Definition
from console.propagation.sql.cursor import Name
from console.propagation.tables import PgColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class DdlTable:
    """One table.

    whole      its CREATE TABLE was read, so all of its columns are known
    new        created in the current transaction
    temporary  dropped with its session;  fleeting  dropped with its transaction
    partition  part of another table, whose changes reach it
    firm       columns declared NOT NULL;  bound  those whose type, a domain, forbids NULL
    checks     its CHECKs that forbid NULL
    reads      (a generated column, the columns that it is computed from)
    parents    the tables that it inherits from
    born       created by the files being read
    own        the columns that it declares itself: they stay when a parent drops them
    defaulted  columns without a known definition whose default the files set to a constant
    """

    schema: str
    name: str
    columns: tuple[PgColumn, ...] = ()
    key: tuple[str, ...] = ()
    whole: bool = False
    new: bool = False
    born: bool = False
    temporary: bool = False
    fleeting: bool = False
    partition: bool = False
    firm: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    checks: tuple[Check, ...] = ()
    reads: tuple[tuple[str, frozenset[str]], ...] = ()
    parents: tuple[Name, ...] = ()
    own: frozenset[str] = frozenset()
    defaulted: frozenset[str] = frozenset()

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def place(self) -> Name:
        return (self.schema, self.name)

    def column(self, name: str) -> PgColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    def with_column(self, column: PgColumn) -> "DdlTable":
        """The table with a column in its place, or at the end."""
        if self.column(column.name) is None:
            return replace(self, columns=(*self.columns, column))
        return replace(self, columns=tuple(column if old.name == column.name else old for old in self.columns))

    def defined(self, definition: Definition) -> "DdlTable":
        """The table with a new column, or with a definition merged into a column inherited from a parent."""
        name, there = definition.name, self.column(definition.name)
        column = definition.column
        if there is not None:
            column = replace(column, default=column.default or (None if column.computed else there.default))
        table = self.with_column(column)
        return replace(
            table,
            key=(name,) if definition.key else table.key,
            firm=table.firm if definition.nullable else table.firm | {name},
            bound=table.bound | {name} if definition.written.required else table.bound - {name},
            checks=(*table.checks, *definition.checks),
            reads=table.reads if definition.computed != GENERATED else (*table.reads, (name, definition.reads)),
        ).settled()

    def settled(self) -> "DdlTable":
        """The table with the nullability that its constraints leave each column."""
        kept = self.firm | self.bound | {name for check in self.checks if check.valid for name in check.columns}
        columns = tuple(replace(column, nullable=column.name not in kept) for column in self.columns)
        return replace(self, columns=columns)

    def without(self, name: str) -> "DdlTable":
        kept = tuple(column for column in self.columns if column.name != name)
        return replace(
            self,
            columns=kept,
            key=() if name in self.key else self.key,
            own=self.own - {name},
            defaulted=self.defaulted - {name},
            firm=self.firm - {name},
            bound=self.bound - {name},
            checks=tuple(check for check in self.checks if name not in check.mentions),
            reads=tuple(entry for entry in self.reads if entry[0] != name),
        ).settled()

    def renamed(self, old: str, new: str) -> "DdlTable":
        def one(name: str) -> str:
            return new if name == old else name

        def all_of(names: Iterable[str]) -> frozenset[str]:
            return frozenset(map(one, names))

        return replace(
            self,
            columns=tuple(replace(c, name=one(c.name)) for c in self.columns),
            key=tuple(map(one, self.key)),
            own=all_of(self.own),
            defaulted=all_of(self.defaulted),
            firm=all_of(self.firm),
            bound=all_of(self.bound),
            checks=tuple(replace(c, columns=all_of(c.columns), mentions=all_of(c.mentions)) for c in self.checks),
            reads=tuple((one(name), all_of(read)) for name, read in self.reads),
        )

    def generated_from(self, name: str) -> tuple[str, ...]:
        """Columns that are computed from a column, and dropped with it."""
        return tuple(column for column, read in self.reads if name in read)

    def check(self, constraint: str) -> Check | None:
        """A CHECK by its name; PostgreSQL generates missing names, which end in `_check`.

        raises  ValueError where it may be one of several, and it matters which
        """
        named = next((check for check in self.checks if check.name == constraint), None)
        if named is not None or not constraint.rstrip("0123456789").endswith("_check"):
            return named
        nameless = [check for check in self.checks if not check.name]
        if len(nameless) > 1 and any(check.columns for check in nameless):
            raise ValueError(f"the CHECK called {constraint} is not known")
        return nameless[0] if nameless else None

    def changed(self, check: Check, now: Check | None) -> "DdlTable":
        """The table with one CHECK replaced, or removed."""
        left = (now if one is check else one for one in self.checks)
        return replace(self, checks=tuple(one for one in left if one is not None)).settled()
