"""The tables and types that the files read so far define."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from console.propagation.observe.table_state import DdlTable
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.postgres import UserTypes, WrittenType
from console.propagation.tables import PgTable

TEMP: Final = "pg_temp"


@dataclass(kw_only=True)
class Catalog:
    """The known state of a database.

    schema   where unqualified names are created;  path  where they are looked up
    outside  the path restored at the end of a transaction with SET LOCAL;  home  the path that a session begins with
    replicated  the tables that some store has; None if unknown: all of them
    indexes  the plain columns of unique indexes
    views    also foreign tables: ALTER TABLE accepts them, but none of them replicates
    left     former names of tables, and the tables at that moment
    origins  a table's name → its first name
    schemas  the schemas known to exist
    learned  the files given define the earlier schema
    routines a function's name → whether it changes no table; views that call one are here too
    passed   names of tables that were created and dropped again, and interim ones that were given up
    interim  names that renamed tables took and no table had before
    strayed  first names of tables that were altered under another name
    armed    a trigger or a rule that may alter tables when rows are written
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
    interim: set[Name] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.home: tuple[str, ...] = (self.schema,)
        self.schemas |= {"public", self.schema}
        self.look(self.home)

    def look(self, path: Sequence[str]) -> None:
        """Set the path along which unqualified names are looked up; they are created in its first schema."""
        self.path = self.types.path = tuple(path)
        self.schema = path[0] if path else ""

    def full(self, name: Name) -> Name:
        """The qualified name of a relation: the first along the path; an unknown one is assumed where it would be created."""
        if name[0]:
            return (TEMP if name[0].startswith(TEMP) else name[0], name[1])
        order = self.path if TEMP in self.path else (TEMP, *self.path)
        candidates = ((schema, name[1]) for schema in order)
        return next((one for one in candidates if one in self.tables or one in self.views), self.made(name))

    def made(self, name: Name) -> Name:
        """The qualified name of an object to be created."""
        schema = name[0] or self.schema
        return (TEMP if schema.startswith(TEMP) else schema, name[1])

    def settles(self, name: Name, cursor: Cursor) -> None:
        """raises NotUnderstood if the schema of a new object is not known"""
        if not name[0] and self.schema not in self.schemas and len(self.path) != 1:
            raise cursor.wrong(f"the schema {self.schema} may not exist", "write the name with its schema")

    def table(self, name: Name) -> DdlTable:
        """A table by its full name; a table that no file defines is assumed to exist, with unknown columns."""
        return self.tables.get(name) or DdlTable(schema=name[0], name=name[1])

    def put(self, table: DdlTable) -> None:
        self.tables[table.place] = table

    def concerns(self, name: Name) -> bool:
        """Whether some store has the table."""
        return self.replicated is None or name in self.replicated

    def below(self, name: Name) -> tuple[Name, ...]:
        """The tables that inherit directly from a table, and its partitions."""
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
        """Roll a transaction back."""
        vars(self).update(vars(before.copy()))

    def settle(self) -> None:
        """End a transaction: its objects stay, its local settings do not."""
        left = {name: table for name, table in self.tables.items() if not table.fleeting}
        self.tables = {name: replace(table, new=False) for name, table in left.items()}
        if self.outside is not None:
            self.look(self.outside)
        self.outside = None

    def forget_moves(self) -> None:
        """Forget earlier names: the files of the earlier schema define the present owners of all names."""
        self.left, self.origins = {}, {}
        self.interim = set()

    def new_session(self) -> None:
        """Begin a new session, with the initial path and without temporary tables."""
        self.tables = {n: replace(table, born=False) for n, table in self.tables.items() if not table.temporary}
        self.passed = set()
        self.outside = None
        self.look(self.home)

    def moved(self, table: DdlTable, name: Name) -> None:
        """Rename a table; the tables that inherit from it still do."""
        old = table.place
        self.tables.pop(old, None)
        self.put(replace(table, schema=name[0], name=name[1]))
        for child in self.below(old):
            below = self.table(child)
            parents = tuple(name if parent == old else parent for parent in below.parents)
            self.put(replace(below, parents=parents))

    def all(self) -> tuple[PgTable, ...]:
        """Every fully known table, without temporary tables and partitions, by name."""
        tables = (t for t in self.tables.values() if t.whole and not t.temporary and not t.partition)
        return tuple(
            PgTable(t.schema, t.name, t.columns, t.key) for t in sorted(tables, key=lambda t: (t.schema, t.name))
        )


def define_type(cursor: Cursor, catalog: Catalog, name: Name, written: WrittenType) -> None:
    """raises NotUnderstood if the statement continues"""
    catalog.types.defined[catalog.made(name)] = written
    if not cursor.done:
        raise cursor.wrong("expected the end of the statement")
