"""CREATE TABLE, CREATE TYPE and CREATE DOMAIN: what later statements build on. They are no changes themselves."""

from dataclasses import replace
from typing import Final

from console.propagation.observe.catalog import Catalog, Known, define_type
from console.propagation.sql.columns import IDENTITY, Definition, read_column, required_by
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.postgres import Written, read_type
from console.propagation.sql.words import Statement, statements
from console.propagation.types import Type

TABLE_CONSTRAINTS: Final = ("constraint", "primary", "unique", "check", "foreign", "exclude")


def create_table(cursor: Cursor, catalog: Catalog) -> Known:
    """CREATE TABLE, from behind TABLE; the table is put into the catalog.

    raises  NotUnderstood
    """
    cursor.take("if", "not", "exists")
    name = catalog.full(cursor.qualified())
    if (there := catalog.tables.get(name)) is not None and there.whole:
        return there
    table = Known(*name, whole=True, new=True)
    if cursor.take("partition", "of"):
        parent = catalog.table(catalog.full(cursor.qualified()))
        table = replace(parent, schema=name[0], name=name[1], new=True, partition=True)
    elif cursor.take("of"):
        cursor.qualified()
        table = replace(table, whole=False)
    elif cursor.sees("("):
        inside = cursor.bracketed()
        query = any(word.text == "as" for word in cursor.statement.words[cursor.at : cursor.end])
        table = replace(table, whole=False) if query else _elements(inside, catalog, table)
    else:
        table = replace(table, whole=False)  # CREATE TABLE … AS: its columns are a query's
    table = _inherited(cursor, catalog, table)
    catalog.put(table)
    return table


def _elements(inside: Cursor, catalog: Catalog, table: Known) -> Known:
    for part in inside.parts():
        if part.take("like"):
            model = catalog.table(catalog.full(part.qualified()))
            for column in model.columns:
                table = table.with_column(column)
            table = replace(table, whole=table.whole and model.whole)
        elif part.sees_any(*TABLE_CONSTRAINTS):
            table = constrained(part, table, catalog)
        else:
            definition = read_column(part, catalog.types, catalog.schema)
            table = table.with_column(definition.column)
            if definition.key:
                table = replace(table, key=(definition.name,))
    return table


def constrained(part: Cursor, table: Known, catalog: Catalog) -> Known:
    """A table with the NOT NULL and the key that a table constraint brings."""
    name = part.name() if part.take("constraint") else ""
    if part.take("primary", "key"):
        if part.take("using", "index"):
            key = catalog.indexes.get(part.name(), ())
        else:
            key = tuple(column.name() for column in part.bracketed().parts())
        for column in key:
            table = table.hardened(column)
        return replace(table.required(key), key=key)
    if part.take("check"):
        condition = required_by(part.bracketed())
        # a CHECK that is NOT VALID says nothing about the rows that are there
        named = name or f"{table.name}_{'_'.join(sorted(condition))}_check"
        return table.checked(named, condition, valid=not part.sees("not", "valid")) if condition else table
    return table


def _inherited(cursor: Cursor, catalog: Catalog, table: Known) -> Known:
    """The table with its parents' columns before its own; one that both have is one column."""
    declared = table.columns
    table = replace(table, own=frozenset(column.name for column in declared))
    while not cursor.done:
        if cursor.take("inherits"):
            table = replace(table, columns=())
            for parent in cursor.bracketed().parts():
                name = catalog.full(parent.qualified())
                above = catalog.table(name)
                for column in above.columns:
                    # an identity stays with the table that has it
                    table = table.with_column(replace(column, computed="") if column.computed == IDENTITY else column)
                table = replace(table, whole=table.whole and above.whole, parents=(*table.parents, name))
            for column in declared:
                table = table.with_column(column)
        else:
            cursor.at += 1
    return table


def create_index(cursor: Cursor, catalog: Catalog) -> None:
    """CREATE UNIQUE INDEX, from its first word: a primary key may be made of it. Anything else is passed by."""
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


def create_view(cursor: Cursor, catalog: Catalog) -> None:
    """CREATE VIEW and CREATE FOREIGN TABLE, from the first word: nothing of them replicates. Others are passed by."""
    if not cursor.take("create"):
        return
    cursor.take("or", "replace")
    for word in ("global", "local", "temporary", "temp", "recursive", "materialized"):
        cursor.take(word)
    if cursor.take("view") or cursor.take("foreign", "table"):
        cursor.take("if", "not", "exists")
        catalog.views.add(catalog.full(cursor.qualified()))


def guarded(statement: Statement, catalog: Catalog) -> str:
    """A DO block that makes nothing but types and foreign keys, as tools write it to pass over what is there already.

    returns  what it does, `create_type` or `add_constraint`; "" where it is no such block, as far as that is plain:
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
        name = catalog.full(Cursor(cursor.statement, cursor.at, cursor.end).qualified())
        if name not in catalog.types.found:
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


def create_type(cursor: Cursor, catalog: Catalog) -> Name:
    """CREATE TYPE, from behind TYPE."""
    name = cursor.qualified()
    if cursor.take("as", "enum"):
        inside = cursor.bracketed()
        labels = tuple(part.text() for part in inside.parts())
        written = Written(".".join(part for part in name if part), Type("enum", labels=labels))
        define_type(cursor, catalog, name, written)
    return name


def create_domain(cursor: Cursor, catalog: Catalog) -> Name:
    """CREATE DOMAIN, from behind DOMAIN: its values are those of the type below."""
    name = cursor.qualified()
    cursor.take("as")
    base = read_type(cursor, catalog.types, catalog.schema)
    required = base.required
    while not cursor.done:
        required |= cursor.sees("not", "null") or cursor.sees("value", "is", "not", "null")
        cursor.at += 1
    written = Written(".".join(part for part in name if part), base.type, required=required, unknown=base.unknown)
    catalog.types.found[catalog.full(name)] = written
    return name


def alter_type(cursor: Cursor, catalog: Catalog) -> str:
    """ALTER TYPE, from behind TYPE: a new enum value is remembered.

    returns  what to warn of, or ""
    raises   NotUnderstood for changes that reach into columns
    """
    name = catalog.full(cursor.qualified())
    shown = ".".join(name)
    if cursor.take("add", "value"):
        cursor.take("if", "not", "exists")
        known, value = catalog.types.found.get(name), cursor.text()
        if known is not None and known.type.name == "enum":
            labels = (*known.type.labels, value)
            catalog.types.found[name] = replace(known, type=replace(known.type, labels=labels))
        return ""
    if cursor.take("rename", "value"):
        return (
            f"rows that hold the old value of {shown} keep it in the stores: PostgreSQL does not publish the renaming"
        )
    if cursor.sees_any("owner", "set", "rename"):
        if cursor.take("rename", "to"):
            _rename_type(name, (name[0], cursor.name()), catalog)
        return ""
    raise cursor.wrong(
        f"a change of the composite type {shown}", "say which columns hold it, and change them one by one"
    )


def _rename_type(old: Name, new: Name, catalog: Catalog) -> None:
    """A type under another name: the columns that have it keep it, whatever gets the old name later."""
    known = catalog.types.found.pop(old, None)
    if known is None:
        return
    written = replace(known, postgres=".".join(new))
    catalog.types.found[new] = written
    names = {known.postgres: written.postgres, f"{known.postgres}[]": f"{written.postgres}[]"}
    for table in list(catalog.tables.values()):
        columns = tuple(replace(c, postgres=names.get(c.postgres, c.postgres)) for c in table.columns)
        catalog.put(replace(table, columns=columns))


def definition_of(column: Definition) -> str:
    """What a person should know about a column that is added or created, or ""."""
    if column.written.unknown:
        return f"{column.name}: {column.written.postgres} is defined in no file given, its values are taken as text"
    return ""
