"""What a statement does to the session and the transaction around it: where names are looked for, whether it goes on.

source  PostgreSQL 15 documentation, SET, set_config (§9.27.1), §5.9.3 (search_path)
"""

from collections.abc import Iterator
from typing import Final

from console.propagation.observe.catalog import Catalog
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.words import Statement, statements

_PATH: Final = "search_path"
_PASSED: Final = ("", "$user", "pg_catalog", "pg_temp")
_HINT: Final = "write SET search_path TO … as a statement of its own, or write names with their schema"


def follow_path(statement: Statement, catalog: Catalog) -> None:
    """`SET search_path TO app, public` and the like: names without a schema are looked for there from now on.

    raises  NotUnderstood where a statement sets it to what is not written there
    """
    cursor = Cursor.over(statement)
    if cursor.take("reset"):
        if cursor.sees_any(_PATH, "all"):
            catalog.schema, catalog.outside = catalog.home, None
    elif cursor.take("set"):
        local = cursor.take("local")
        if not local:
            cursor.take("session")
        if cursor.take("schema"):
            _look(catalog, [cursor.text()], local)
        elif cursor.take(_PATH) and (cursor.take("=") or cursor.take("to")):
            _look(catalog, list(_names(cursor, catalog)), local)
    elif _sets_path(statement):
        if not cursor.take("select"):
            raise cursor.wrong("it sets search_path", _HINT)
        cursor.take("pg_catalog", ".")
        cursor.expect("set_config")
        inside = cursor.bracketed()
        parts = inside.parts()
        if len(parts) != 3 or not cursor.done or parts[2].end - parts[2].at != 1:
            raise cursor.wrong("it sets search_path in a way that is not followed", _HINT)
        local = parts[2].sees("true")
        _look(catalog, list(_listed(parts[1].text())), local)


def _sets_path(statement: Statement) -> bool:
    config = any(word.kind == "word" and word.text == "set_config" for word in statement.words)
    return config and any(word.kind == "text" and word.text.lower() == _PATH for word in statement.words)


def _names(cursor: Cursor, catalog: Catalog) -> Iterator[str]:
    if cursor.sees("default"):
        yield catalog.home
        return
    for part in cursor.parts():
        word = part.peek()
        if word is not None:
            yield word.text


def _listed(text: str) -> Iterator[str]:
    """The names in a setting's text; nothing where it has none."""
    for statement in statements(text):
        for part in Cursor.over(statement).parts():
            yield part.name()


def _look(catalog: Catalog, names: list[str], local: bool) -> None:
    """The first schema of the path; a path without one leaves only names that have theirs."""
    found = next((name for name in names if name not in _PASSED), None)
    if found is None:
        return
    if local:
        catalog.outside = catalog.outside or catalog.schema
    else:
        catalog.outside = None
    catalog.schema = found


def chains(statement: Statement) -> bool:
    """`COMMIT AND CHAIN`: the next transaction begins at once."""
    texts = [word.text for word in statement.words if word.kind == "word"]
    return texts[-2:] == ["and", "chain"]
