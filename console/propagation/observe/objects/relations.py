"""Views, foreign tables and schemas: relations that are not tables, and what contains them.

source  PostgreSQL 15 documentation, ALTER VIEW, ALTER INDEX (which take tables where they rename), ALTER SCHEMA
"""

from console.propagation.observe.catalog import TEMP, Catalog
from console.propagation.sql.cursor import Cursor, Name

# what ALTER … RENAME takes tables for, too
LIKE_TABLES = (("view",), ("materialized", "view"), ("foreign", "table"), ("index",))


def create_view(cursor: Cursor, catalog: Catalog) -> None:
    """CREATE VIEW and CREATE FOREIGN TABLE, from the first word: none of them replicates. Other statements are ignored."""
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
    """ALTER VIEW, INDEX … on a table, which PostgreSQL allows: a cursor as behind ALTER TABLE; None for any other."""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if not ahead.take("alter") or not any(ahead.take(*words) for words in LIKE_TABLES):
        return None
    behind = Cursor(ahead.statement, ahead.at, ahead.end)
    ahead.take("if", "exists")
    if ahead.sees("all"):
        return None
    name = catalog.full(ahead.qualified())
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
    """ALTER VIEW, MATERIALIZED VIEW or FOREIGN TABLE, from the first word."""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if ahead.take("alter") and any(ahead.take(*words) for words in LIKE_TABLES[:-1]):
        ahead.take("if", "exists")
        if not ahead.sees("all"):
            move_view(ahead, catalog.full(ahead.qualified()), catalog)


def drop_view(cursor: Cursor, catalog: Catalog) -> None:
    """DROP VIEW, MATERIALIZED VIEW or FOREIGN TABLE, from the first word."""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if ahead.take("drop") and any(ahead.take(*words) for words in LIKE_TABLES[:-1]):
        ahead.take("if", "exists")
        while True:
            catalog.views.discard(catalog.full(ahead.qualified()))
            if not ahead.take(","):
                return


def create_schema(cursor: Cursor, catalog: Catalog) -> bool:
    """CREATE SCHEMA, from the first word. raises NotUnderstood if it also creates tables"""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if not ahead.take("create", "schema"):
        return False
    ahead.take("if", "not", "exists")
    if not ahead.sees("authorization"):
        catalog.schemas.add(ahead.name())
    while not ahead.done:
        if ahead.sees("create"):
            raise ahead.wrong(
                "a schema that is created together with its contents", "create them by separate statements"
            )
        ahead.at += 1
    return True
