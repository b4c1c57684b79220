"""The tables and types that the files read so far define, as far as they do."""

from dataclasses import dataclass, field, replace

from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.postgres import UserTypes, Written
from console.propagation.tables import Column, Table


@dataclass(frozen=True, slots=True)
class Known:
    """One table.

    whole      its CREATE TABLE was read: a column that is not here does not exist
    new        created in the transaction that is being read
    temporary  gone with its session
    partition  part of another table, whose changes are its own
    checks     (constraint, columns) that a CHECK of the table keeps from being NULL where nothing else does
    unproven   the same of those that are NOT VALID yet
    parents    the tables that it inherits from
    own        the columns that it declares itself: they stay when a parent's go
    """

    schema: str
    name: str
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    whole: bool = False
    new: bool = False
    temporary: bool = False
    partition: bool = False
    checks: tuple[tuple[str, frozenset[str]], ...] = ()
    unproven: tuple[tuple[str, frozenset[str]], ...] = ()
    parents: tuple[Name, ...] = ()
    own: frozenset[str] = frozenset()

    @property
    def full(self) -> str:
        return f"{self.schema}.{self.name}"

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)

    def with_column(self, column: Column) -> "Known":
        """The column in its place, or at the end."""
        if self.column(column.name) is None:
            return replace(self, columns=(*self.columns, column))
        return replace(self, columns=tuple(column if old.name == column.name else old for old in self.columns))

    def without(self, name: str) -> "Known":
        kept = tuple(column for column in self.columns if column.name != name)
        return replace(self, columns=kept, key=() if name in self.key else self.key, own=self.own - {name})

    def renamed(self, old: str, new: str) -> "Known":
        columns = tuple(replace(c, name=new) if c.name == old else c for c in self.columns)
        own = frozenset(new if name == old else name for name in self.own)
        return replace(self, columns=columns, key=tuple(new if name == old else name for name in self.key), own=own)

    def checked(self, constraint: str, names: frozenset[str], *, valid: bool) -> "Known":
        """The table with a CHECK that keeps these columns from being NULL."""
        if not valid:
            return replace(self, unproven=(*self.unproven, (constraint, names)))
        softly = frozenset(c.name for c in self.columns if c.name in names and c.nullable)
        return replace(self.required(names), checks=(*self.checks, (constraint, softly)))

    def validated(self, constraint: str) -> "Known":
        names = dict(self.unproven).get(constraint, frozenset())
        left = tuple(entry for entry in self.unproven if entry[0] != constraint)
        return replace(self, unproven=left).checked(constraint, names, valid=True) if names else self

    def unchecked(self, constraint: str) -> "tuple[Known, frozenset[str]]":
        """The table without a CHECK, and the columns that may be NULL from now on."""
        names = dict(self.checks).get(constraint, frozenset())
        columns = tuple(replace(c, nullable=True) if c.name in names else c for c in self.columns)
        left = tuple(entry for entry in self.checks if entry[0] != constraint)
        unproven = tuple(entry for entry in self.unproven if entry[0] != constraint)
        return replace(self, columns=columns, checks=left, unproven=unproven), names

    def hardened(self, name: str) -> "Known":
        """NOT NULL by itself: no CHECK that goes changes that."""
        return replace(self, checks=tuple((constraint, names - {name}) for constraint, names in self.checks))

    def required(self, names: "frozenset[str] | tuple[str, ...]") -> "Known":
        columns = tuple(replace(c, nullable=False) if c.name in names else c for c in self.columns)
        return replace(self, columns=columns)


@dataclass
class Catalog:
    """What is known.

    schema   where names without one live;  home  the same as a session begins
    outside  the schema that a SET LOCAL gives back at the end of its transaction
    replicated  the tables that any store has, where somebody said; None: all of them
    indexes  the plain columns of unique ones
    views    and foreign tables: ALTER TABLE takes them, but nothing of them replicates
    left     names that tables gave up, and the tables as they were then
    origins  a table's name → the one that it had at first
    """

    tables: dict[Name, Known] = field(default_factory=dict)
    types: UserTypes = field(default_factory=UserTypes)
    schema: str = "public"
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    views: set[Name] = field(default_factory=set)
    left: dict[Name, Known] = field(default_factory=dict)
    origins: dict[Name, Name] = field(default_factory=dict)
    outside: str | None = None
    replicated: frozenset[Name] | None = None

    def __post_init__(self) -> None:
        self.home = self.schema

    def full(self, name: Name) -> Name:
        return (name[0] or self.schema, name[1])

    def table(self, name: Name) -> Known:
        """A table by its full name; one that no file defines is known to exist, and nothing more."""
        return self.tables.get(name) or Known(*name)

    def put(self, table: Known) -> None:
        self.tables[(table.schema, table.name)] = table

    def concerns(self, name: Name) -> bool:
        """Some store has the table."""
        return self.replicated is None or name in self.replicated

    def below(self, name: Name) -> tuple[Name, ...]:
        """The tables that inherit from a table at once."""
        return tuple(found for found, table in self.tables.items() if name in table.parents)

    def copy(self) -> "Catalog":
        found = replace(self, tables=dict(self.tables), types=UserTypes(dict(self.types.found)), views=set(self.views))
        found.indexes, found.left, found.origins = dict(self.indexes), dict(self.left), dict(self.origins)
        found.home = self.home
        return found

    def restore(self, before: "Catalog") -> None:
        """A transaction was rolled back: all is as it was before."""
        vars(self).update(vars(before.copy()))

    def settle(self) -> None:
        """A transaction has ended: what it created is there, and what was set for it alone is not."""
        self.tables = {name: replace(table, new=False) for name, table in self.tables.items()}
        self.schema, self.outside = self.outside or self.schema, None

    def forget_moves(self) -> None:
        """What was learnt is the past: whoever has a name now has it rightly."""
        self.left, self.origins = {}, {}

    def all(self) -> tuple[Table, ...]:
        """Every whole table that outlives its session and is no part of another, by name."""
        found = (t for t in self.tables.values() if t.whole and not t.temporary and not t.partition)
        return tuple(Table(t.schema, t.name, t.columns, t.key) for t in sorted(found, key=lambda t: (t.schema, t.name)))


def define_type(cursor: Cursor, catalog: Catalog, name: Name, written: Written) -> None:
    """raises NotUnderstood where the statement goes on"""
    catalog.types.found[catalog.full(name)] = written
    if not cursor.done:
        raise cursor.wrong("expected the end of the statement")
