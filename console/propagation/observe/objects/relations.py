"""Views, foreign tables and schemas: what tables are told apart from, and what they lie in.

source  PostgreSQL 15 documentation, ALTER VIEW, ALTER INDEX (which take tables where they rename), ALTER SCHEMA
"""

from console.propagation.observe.catalog import TEMP, Catalog
from console.propagation.sql.cursor import Cursor, Name

# what ALTER … RENAME takes tables for, too
LIKE_TABLES = (("view",), ("materialized", "view"), ("foreign", "table"), ("index",))


def create_view(cursor: Cursor, catalog: Catalog) -> None:
    """CREATE VIEW and CREATE FOREIGN TABLE, from the first word: nothing of them replicates. Others are passed by."""
    if not cursor.take("create"):
        return
    cursor.take("or", "replace")
    temporary = False
    for word in ("global", "local", "temporary", "temp", "recursive", "materialized"):
        temporary |= cursor.take(word) and word in ("temporary", "temp")
    if cursor.take("view") or cursor.take("foreign", "table"):
        cursor.take("if", "not", "exists")
        name = cursor.qualified()
        if not temporary:
            catalog.settles(name, cursor)
        catalog.views.add((TEMP, name[1]) if temporary else catalog.made(name))


def altered(cursor: Cursor, catalog: Catalog) -> Cursor | None:
    """ALTER VIEW, INDEX … of what is a table: as ALTER TABLE, from behind TABLE. None where it is none."""
    found = Cursor(cursor.statement, cursor.at, cursor.end)
    if not found.take("alter") or not any(found.take(*words) for words in LIKE_TABLES):
        return None
    behind = Cursor(found.statement, found.at, found.end)
    found.take("if", "exists")
    if found.sees("all"):
        return None
    name = catalog.full(found.qualified())
    return behind if name in catalog.tables or (catalog.replicated is not None and name in catalog.replicated) else None


def move_view(cursor: Cursor, name: Name, catalog: Catalog) -> None:
    """RENAME TO or SET SCHEMA of a view, from behind its name."""
    new = name
    if cursor.take("rename", "to"):
        new = (name[0], cursor.name())
    elif cursor.take("set", "schema"):
        new = (cursor.name(), name[1])
    if name in catalog.views:
        catalog.views = (catalog.views - {name}) | {new}


def alter_view(cursor: Cursor, catalog: Catalog) -> None:
    """ALTER VIEW, MATERIALIZED VIEW or FOREIGN TABLE of what is no table, from the first word."""
    found = Cursor(cursor.statement, cursor.at, cursor.end)
    if found.take("alter") and any(found.take(*words) for words in LIKE_TABLES[:-1]):
        found.take("if", "exists")
        if not found.sees("all"):
            move_view(found, catalog.full(found.qualified()), catalog)


def drop_view(cursor: Cursor, catalog: Catalog) -> None:
    """DROP VIEW, MATERIALIZED VIEW or FOREIGN TABLE, from the first word."""
    found = Cursor(cursor.statement, cursor.at, cursor.end)
    if found.take("drop") and any(found.take(*words) for words in LIKE_TABLES[:-1]):
        found.take("if", "exists")
        while True:
            catalog.views.discard(catalog.full(found.qualified()))
            if not found.take(","):
                return


def create_schema(cursor: Cursor, catalog: Catalog) -> bool:
    """CREATE SCHEMA, from the first word. raises NotUnderstood where it makes tables as well"""
    found = Cursor(cursor.statement, cursor.at, cursor.end)
    if not found.take("create", "schema"):
        return False
    found.take("if", "not", "exists")
    if not found.sees("authorization"):
        catalog.schemas.add(found.name())
    while not found.done:
        if found.sees("create"):
            raise found.wrong("a schema that is made together with what is in it", "make it by statements of their own")
        found.at += 1
    return True
