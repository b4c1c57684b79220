"""CREATE TABLE and CREATE INDEX: no changes themselves, but later statements build on them."""

from dataclasses import replace
from typing import Final

from console.propagation.observe.catalog import TEMP, Catalog
from console.propagation.observe.objects.types import create_type
from console.propagation.observe.table_state import DdlTable
from console.propagation.sql.columns import IDENTITY, Definition, read_check, read_column
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.lexer import SqlStatement, statements

TABLE_CONSTRAINTS: Final = ("constraint", "primary", "unique", "check", "foreign")


def create_table(cursor: Cursor, catalog: Catalog, *, temporary: bool = False) -> DdlTable:
    """CREATE TABLE, from behind TABLE; the table is put into the catalog.

    raises  NotUnderstood
    """
    careful = cursor.take("if", "not", "exists")
    written = cursor.qualified()
    name = (TEMP, written[1]) if temporary else catalog.made(written)
    temporary = name[0] == TEMP
    if not temporary:
        catalog.settles(written, cursor)
    there = catalog.tables.get(name)
    if there is not None and (there.whole or careful):
        return there
    table = DdlTable(schema=name[0], name=name[1], whole=True, new=True, born=not careful, temporary=temporary)
    if cursor.take("partition", "of"):
        parent = catalog.full(cursor.qualified())
        table = replace(
            catalog.table(parent), schema=name[0], name=name[1], new=True, born=not careful, temporary=temporary
        )
        table = replace(table, partition=True, parents=(parent,), own=frozenset())
    elif cursor.take("of"):
        cursor.qualified()
        table = replace(table, whole=False)
    elif cursor.sees("("):
        inside = cursor.bracketed()
        query = any(word.text == "as" for word in cursor.statement.words[cursor.at : cursor.end])
        table = replace(table, whole=False) if query else _elements(inside, catalog, table)
    else:
        table = replace(table, whole=False)  # CREATE TABLE … AS: its columns are a query's
    table = _behind(cursor, catalog, table)
    catalog.put(table)
    return table


def constraint_is_next(part: Cursor) -> bool:
    """Whether a constraint of the table follows; `exclude` may be a column's name too."""
    return part.sees_any(*TABLE_CONSTRAINTS) or part.sees("exclude", "(") or part.sees("exclude", "using")


def _elements(inside: Cursor, catalog: Catalog, table: DdlTable) -> DdlTable:
    keys = []
    for part in inside.parts():
        if part.take("like"):
            table = _like(part, catalog, table)
        elif constraint_is_next(part):
            keys.append(part)
        else:
            table = table.defined(read_column(part, catalog.types, catalog.schema))
    for part in keys:  # they may precede the columns that they name
        table = constrained(part, table, catalog)
    return table


def _like(part: Cursor, catalog: Catalog, table: DdlTable) -> DdlTable:
    """The columns of another table (LIKE), with the properties that INCLUDING names."""
    model = catalog.table(catalog.full(part.qualified()))
    taken: set[str] = set()
    while not part.done:
        including = part.take("including")
        if not including:
            part.expect("excluding")
        what = part.name()
        every = ("defaults", "generated", "identity", "constraints", "indexes") if what == "all" else (what,)
        taken = taken | set(every) if including else taken - set(every)
    for column in model.columns:
        kept = {"generated": "generated", IDENTITY: "identity"}.get(column.computed, "defaults") in taken
        table = table.with_column(column if kept else replace(column, default=None, computed=""))
    reads = model.reads if "generated" in taken else ()
    return replace(
        table,
        whole=table.whole and model.whole,
        firm=table.firm | model.firm,
        bound=table.bound | model.bound,
        checks=(*table.checks, *(model.checks if "constraints" in taken else ())),
        reads=(*table.reads, *reads),
        key=model.key if "indexes" in taken and model.key else table.key,
    ).settled()


def constrained(part: Cursor, table: DdlTable, catalog: Catalog) -> DdlTable:
    """A table with the NOT NULL and the key of a table constraint."""
    name = part.name() if part.take("constraint") else ""
    if part.take("primary", "key"):
        if part.take("using", "index"):
            key = catalog.indexes.get(part.name(), ())
        else:
            key = tuple(column.name() for column in part.bracketed().parts())
        return replace(table, key=key, firm=table.firm | set(key)).settled()
    if part.take("check"):
        return replace(table, checks=(*table.checks, read_check(part, name))).settled()
    return table


def _behind(cursor: Cursor, catalog: Catalog, table: DdlTable) -> DdlTable:
    """The clauses behind a table's elements: parents, whose columns come before its own, and ON COMMIT DROP."""
    declared = table
    table = replace(table, own=table.own or frozenset(column.name for column in table.columns))
    if table.partition:
        table = replace(table, own=frozenset())
    while not cursor.done:
        if cursor.take("inherits"):
            table = _inherited(cursor.bracketed(), catalog, declared)
        elif cursor.take("on", "commit", "drop"):
            table = replace(table, fleeting=True)
        else:
            cursor.at += 1
    return table


def _inherited(parents: Cursor, catalog: Catalog, declared: DdlTable) -> DdlTable:
    table = replace(declared, columns=(), own=frozenset(column.name for column in declared.columns))
    for parent in parents.parts():
        name = catalog.full(parent.qualified())
        above = catalog.table(name)
        for column in above.columns:
            there = table.column(column.name)
            # an identity is not inherited
            taken = replace(column, computed="") if column.computed == IDENTITY else column
            table = table if there is not None else table.with_column(taken)
        table = replace(
            table,
            whole=table.whole and above.whole,
            parents=(*table.parents, name),
            firm=table.firm | above.firm,
            bound=table.bound | above.bound,
            checks=(*table.checks, *(check for check in above.checks if not check.own)),
            reads=(*table.reads, *above.reads),
        )
    for column in declared.columns:
        there = table.column(column.name)
        inherits = there is not None and column.default is None and not column.computed
        table = table.with_column(replace(column, default=there.default) if there and inherits else column)
    return table.settled()


def create_index(cursor: Cursor, catalog: Catalog) -> None:
    """CREATE UNIQUE INDEX, which may become a primary key; any other statement is ignored."""
    if not cursor.take("create", "unique", "index"):
        return
    cursor.take("concurrently")
    cursor.take("if", "not", "exists")
    if cursor.sees("on"):
        return
    name = cursor.name()
    cursor.expect("on")
    cursor.take("only")
    cursor.qualified()
    if cursor.take("using"):
        cursor.name()
    parts = cursor.bracketed().parts()
    if all(part.end - part.at == 1 for part in parts):
        catalog.indexes[name] = tuple(part.name() for part in parts)


def guarded(statement: SqlStatement, catalog: Catalog) -> str:
    """A DO block that creates only types and foreign keys, as tools write it to skip existing ones.

    returns  what it does, `create_type` or `add_constraint`; "" where it is not such a block, as far as that is plain:
             `BEGIN CREATE TYPE …; EXCEPTION WHEN duplicate_object THEN NULL; END`
    """
    bodies = [word.text for word in statement.words if word.kind == "text"]
    if statement.words[0].text != "do" or not bodies:
        return ""
    types: list[Cursor] = []
    constraints = 0
    for part in statements(bodies[0], headings=False):
        cursor = Cursor.over(part)
        cursor.take("begin")
        if cursor.take("if"):
            cursor.until("then")
            cursor.take("then")
        if cursor.take("create", "type"):
            types.append(cursor)
        elif _adds_foreign_key(cursor):
            constraints += 1
        elif not (cursor.sees("exception", "when", "duplicate_object", "then", "null") or cursor.sees("end")):
            return ""
    for cursor in types:
        name = catalog.made(Cursor(cursor.statement, cursor.at, cursor.end).qualified())
        if name not in catalog.types.defined:
            create_type(cursor, catalog)
    return "create_type" if types else "add_constraint" if constraints else ""


def _adds_foreign_key(cursor: Cursor) -> bool:
    if not cursor.take("alter", "table"):
        return False
    cursor.take("only")
    cursor.qualified()
    if cursor.take("add", "constraint"):
        cursor.name()
    else:
        cursor.take("add")
    return cursor.sees("foreign", "key") and len(cursor.parts()) == 1


def selected_into(cursor: Cursor, catalog: Catalog) -> Name | None:
    """The table that SELECT … INTO creates; None for another query."""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if not ahead.sees_any("select", "with"):
        return None
    ahead.until("into", "insert", "update", "delete", "merge")
    if not ahead.take("into"):
        return None
    temporary = False
    for word in ("local", "global", "temporary", "temp", "unlogged"):
        temporary |= ahead.take(word) and word in ("temporary", "temp")
    ahead.take("table")
    name = ahead.qualified()
    full = (TEMP, name[1]) if temporary else catalog.made(name)
    if full[0] != TEMP:
        catalog.settles(name, ahead)
    catalog.put(DdlTable(schema=full[0], name=full[1], new=True, born=True, temporary=full[0] == TEMP))
    return full


def definition_of(column: Definition) -> str:
    """A remark on a column that is added or created, or ""."""
    if column.written.unknown:
        return f"{column.name}: {column.written.postgres} is not defined in the files given: its values are treated as text"
    return ""
