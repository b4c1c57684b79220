"""The tables and types that the files read so far define, as far as they do."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from console.propagation.observe.table.table_state import DdlTable
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.postgres import UserTypes, WrittenType
from console.propagation.tables import PgTable

TEMP: Final = "pg_temp"


@dataclass
class Catalog:
    """What is known.

    schema   where things without one are made;  path  where they are looked for
    outside  the path that a SET LOCAL gives back at the end of its transaction;  home  the one that a session begins with
    replicated  the tables that any store has, where somebody said; None: all of them
    indexes  the plain columns of unique ones
    views    and foreign tables: ALTER TABLE takes them, but nothing of them replicates
    left     names that tables gave up, and the tables as they were then
    origins  a table's name → the one that it had at first
    schemas  those that are known to be there
    learned  files said what was there before
    routines a function's name → nothing that it does changes a table; views that call one are here too
    passed   tables that were made and dropped again
    strayed  first names of tables that were altered under another
    armed    a trigger or a rule that may alter tables once rows are written
    """

    tables: dict[Name, DdlTable] = field(default_factory=dict)
    types: UserTypes = field(default_factory=UserTypes)
    schema: str = "public"
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    views: set[Name] = field(default_factory=set)
    left: dict[Name, DdlTable] = field(default_factory=dict)
    origins: dict[Name, Name] = field(default_factory=dict)
    outside: tuple[str, ...] | None = None
    replicated: frozenset[Name] | None = None
    schemas: set[str] = field(default_factory=set)
    learned: bool = False
    routines: dict[str, bool] = field(default_factory=dict)
    armed: str = ""
    strayed: set[Name] = field(default_factory=set)
    passed: set[Name] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.home: tuple[str, ...] = (self.schema,)
        self.schemas |= {"public", self.schema}
        self.look(self.home)

    def look(self, path: Sequence[str]) -> None:
        """Names without a schema are looked for along a path, and made in the first schema of it."""
        self.path = self.types.path = tuple(path)
        self.schema = path[0] if path else ""

    def full(self, name: Name) -> Name:
        """The relation that is meant: the first along the path; one that is not known is taken to be where it would be made."""
        if name[0]:
            return (TEMP if name[0].startswith(TEMP) else name[0], name[1])
        order = self.path if TEMP in self.path else (TEMP, *self.path)
        candidates = ((schema, name[1]) for schema in order)
        return next((one for one in candidates if one in self.tables or one in self.views), self.made(name))

    def made(self, name: Name) -> Name:
        """The name of what is about to be made."""
        schema = name[0] or self.schema
        return (TEMP if schema.startswith(TEMP) else schema, name[1])

    def settles(self, name: Name, cursor: Cursor) -> None:
        """raises NotUnderstood where it is not known in which schema something is made"""
        if not name[0] and self.schema not in self.schemas and len(self.path) != 1:
            raise cursor.wrong(
                f"whether the schema {self.schema} is there is not known", "write the name with its schema"
            )

    def table(self, name: Name) -> DdlTable:
        """A table by its full name; one that no file defines is known to exist, and nothing more."""
        return self.tables.get(name) or DdlTable(*name)

    def put(self, table: DdlTable) -> None:
        self.tables[table.place] = table

    def concerns(self, name: Name) -> bool:
        """Some store has the table."""
        return self.replicated is None or name in self.replicated

    def below(self, name: Name) -> tuple[Name, ...]:
        """The tables that inherit from a table at once, or are its partitions."""
        return tuple(child for child, table in self.tables.items() if name in table.parents)

    def copy(self) -> "Catalog":
        kept: dict[str, Any] = {
            name: value.copy() if isinstance(value, dict | set) else value
            for name, value in vars(self).items()
            if name not in ("home", "path", "types")
        }
        copy = Catalog(**kept, types=UserTypes(dict(self.types.defined), self.path))
        copy.home, copy.path, copy.schema = self.home, self.path, self.schema
        copy.types.path = self.path
        return copy

    def restore(self, before: "Catalog") -> None:
        """A transaction was rolled back: all is as it was before."""
        vars(self).update(vars(before.copy()))

    def settle(self) -> None:
        """A transaction has ended: what it created is there, and what was set for it alone is not."""
        left = {name: table for name, table in self.tables.items() if not table.fleeting}
        self.tables = {name: replace(table, new=False) for name, table in left.items()}
        if self.outside is not None:
            self.look(self.outside)
        self.outside = None

    def forget_moves(self) -> None:
        """What was learnt is the past: whoever has a name now has it rightly."""
        self.left, self.origins = {}, {}

    def begin_anew(self) -> None:
        """Another session: it looks where a session begins to, and has none of the other's temporary tables."""
        self.tables = {n: replace(table, born=False) for n, table in self.tables.items() if not table.temporary}
        self.passed = set()
        self.outside = None
        self.look(self.home)

    def moved(self, table: DdlTable, name: Name) -> None:
        """A table under another name; what inherits from it still does."""
        old = table.place
        self.tables.pop(old, None)
        self.put(replace(table, schema=name[0], name=name[1]))
        for child in self.below(old):
            below = self.table(child)
            parents = tuple(name if parent == old else parent for parent in below.parents)
            self.put(replace(below, parents=parents))

    def all(self) -> tuple[PgTable, ...]:
        """Every whole table that outlives its session and is no part of another, by name."""
        tables = (t for t in self.tables.values() if t.whole and not t.temporary and not t.partition)
        return tuple(
            PgTable(t.schema, t.name, t.columns, t.key) for t in sorted(tables, key=lambda t: (t.schema, t.name))
        )


def define_type(cursor: Cursor, catalog: Catalog, name: Name, written: WrittenType) -> None:
    """raises NotUnderstood where the statement goes on"""
    catalog.types.defined[catalog.made(name)] = written
    if not cursor.done:
        raise cursor.wrong("expected the end of the statement")
