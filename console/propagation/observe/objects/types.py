"""Types and domains: no changes themselves, but columns are defined by them.

source  PostgreSQL 15 documentation, CREATE TYPE, ALTER TYPE, CREATE DOMAIN, ALTER DOMAIN
"""

from dataclasses import replace
from typing import Final

from console.propagation.observe.catalog import Catalog, define_type
from console.propagation.sql.columns import Definition, read_default, required_by
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.postgres import WrittenType, read_type
from console.propagation.types import Type

_ONE_BY_ONE: Final = "change the columns that have it one by one"
_PARTS: Final = ("default", "constraint", "not", "null", "check", "collate")


def create_type(cursor: Cursor, catalog: Catalog) -> Name:
    """CREATE TYPE, from behind TYPE."""
    name = cursor.qualified()
    catalog.settles(name, cursor)
    if cursor.take("as", "enum"):
        inside = cursor.bracketed()
        labels = tuple(part.text() for part in inside.parts())
        define_type(
            cursor,
            catalog,
            name,
            WrittenType(postgres=_shown(catalog.made(name)), type=Type(name="enum", labels=labels)),
        )
    return name


def create_domain(cursor: Cursor, catalog: Catalog) -> Name:
    """CREATE DOMAIN, from behind DOMAIN: its values are those of its base type."""
    name = cursor.qualified()
    catalog.settles(name, cursor)
    cursor.take("as")
    base = read_type(cursor, catalog.types, catalog.schema)
    definition = Definition(name="value", written=base)
    definition.default, definition.computed = base.default, base.computed
    required = base.required
    while not cursor.done:
        if cursor.take("constraint"):
            cursor.name()
        if cursor.take("default"):
            read_default(cursor, definition, catalog.types, catalog.schema)
        elif cursor.take("not", "null"):
            required = True
        elif cursor.take("check"):
            required |= "value" in required_by(cursor.bracketed())
        elif cursor.take("collate"):
            cursor.qualified()
        elif not cursor.take("null"):
            raise cursor.wrong("expected a constraint of the domain")
    full = catalog.made(name)
    catalog.types.defined[full] = WrittenType(
        postgres=_shown(full),
        type=base.type,
        required=required,
        unknown=base.unknown,
        default=definition.default,
        computed=definition.computed,
    )
    return name


def alter_type(cursor: Cursor, catalog: Catalog) -> str:
    """ALTER TYPE, from behind TYPE: adds enum values.

    returns  a warning, or ""
    raises   NotUnderstood for changes that affect columns
    """
    name = catalog.types.full(cursor.qualified(), catalog.schema)
    known = catalog.types.defined.get(name)
    if cursor.take("add", "value"):
        cursor.take("if", "not", "exists")
        value = cursor.text()
        if known is not None and known.type.name == "enum" and value not in known.type.labels:
            labels = (*known.type.labels, value)
            catalog.types.defined[name] = replace(known, type=replace(known.type, labels=labels))
        return ""
    if cursor.take("rename", "value"):
        old = cursor.text()
        cursor.expect("to")
        new = cursor.text()
        if known is not None and known.type.name == "enum":
            labels = tuple(new if label == old else label for label in known.type.labels)
            catalog.types.defined[name] = replace(known, type=replace(known.type, labels=labels))
        full = ".".join(name)
        return f"rows that hold the old value of {full} keep it in the stores: PostgreSQL does not publish the renaming"
    if _moves(cursor, catalog, name) or cursor.sees("owner") or cursor.sees("set", "("):
        return ""
    raise cursor.wrong(
        f"a change of the composite type {'.'.join(name)}", "name the columns of that type, and change them one by one"
    )


def _moves(cursor: Cursor, catalog: Catalog, name: Name) -> bool:
    if cursor.take("rename", "to"):
        rename_type(name, (name[0], cursor.name()), catalog)
    elif cursor.take("set", "schema"):
        rename_type(name, (cursor.name(), name[1]), catalog)
    else:
        return False
    return True


def alter_domain(cursor: Cursor, catalog: Catalog) -> None:
    """ALTER DOMAIN, from behind DOMAIN.

    raises  NotUnderstood for changes that affect columns
    """
    name = catalog.types.full(cursor.qualified(), catalog.schema)
    known = catalog.types.defined.get(name)
    if _moves(cursor, catalog, name) or cursor.sees_any("owner", "validate") or cursor.sees("rename", "constraint"):
        return
    if cursor.take("set", "default") or cursor.take("drop", "default"):
        if known is not None:
            definition = Definition(name="value", written=replace(known, required=False))
            if not cursor.done:
                read_default(cursor, definition, catalog.types, catalog.schema)
            catalog.types.defined[name] = replace(known, default=definition.default, computed=definition.computed)
        return
    if cursor.take("add"):
        if cursor.take("constraint"):
            cursor.name()
        cursor.expect("check")
        if "value" not in required_by(cursor.bracketed()):
            return
    elif cursor.sees("drop", "constraint") and known is not None and not known.required:
        return
    raise cursor.wrong("a change of a domain that may affect columns: whether they allow NULL", _ONE_BY_ONE)


def drop_type(cursor: Cursor, catalog: Catalog) -> None:
    """DROP TYPE or DOMAIN, from behind it."""
    cursor.take("if", "exists")
    while True:
        catalog.types.defined.pop(catalog.types.full(cursor.qualified(), catalog.schema), None)
        if not cursor.take(","):
            return


def rename_type(old: Name, new: Name, catalog: Catalog) -> None:
    """Rename a type: its columns keep it, even if another type takes the old name."""
    known = catalog.types.defined.pop(old, None)
    if known is None:
        return
    written = replace(known, postgres=_shown(new))
    catalog.types.defined[new] = written
    names = {known.postgres: written.postgres, f"{known.postgres}[]": f"{written.postgres}[]"}
    for table in list(catalog.tables.values()):
        columns = tuple(replace(c, postgres=names.get(c.postgres, c.postgres)) for c in table.columns)
        catalog.put(replace(table, columns=columns))


def _shown(name: Name) -> str:
    return name[1] if name[0] == "public" else ".".join(name)
