"""The effect of a statement on its session and transaction: where names are looked up, whether a transaction follows.

source  PostgreSQL 15 documentation, SET, set_config (§9.27.1), §5.9.3 (search_path)
"""

from collections.abc import Iterator, Sequence
from typing import Final

from console.propagation.observe.catalog import TEMP, Catalog
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.lexer import SqlStatement, kept, statements

_PATH: Final = "search_path"
_PASSED: Final = ("", "$user", "pg_catalog")
_STRINGS: Final = "standard_conforming_strings"
_HINT: Final = "write SET search_path TO … as a statement of its own, or write names with their schema"


def follow_path(statement: SqlStatement, catalog: Catalog, *, inside: bool) -> None:
    """`SET search_path TO app, public` and the like: sets where unqualified names are looked up.

    inside  within a transaction opened by the file
    raises  NotUnderstood for a value that is not a literal
    """
    cursor = Cursor.over(statement)
    if cursor.take("reset"):
        if cursor.sees_any(_PATH, "all"):
            _look(catalog, catalog.home, False)
    elif cursor.take("discard"):
        if cursor.sees("all"):
            catalog.new_session()
        elif cursor.sees("temp") or cursor.sees("temporary"):
            catalog.tables = {name: table for name, table in catalog.tables.items() if not table.temporary}
    elif cursor.take("set"):
        local = cursor.take("local")
        if not local:
            cursor.take("session")
        if cursor.take(_STRINGS) and not any(word.text in ("on", "true", "1") for word in statement.words):
            raise cursor.wrong("texts in which a backslash does not mean itself", "write E'…' where it does not")
        if local and not inside and cursor.sees_any(_PATH, "schema"):
            raise cursor.wrong(
                "SET LOCAL outside of a transaction of the file", "leave LOCAL out, or write BEGIN … COMMIT"
            )
        if cursor.take("schema"):
            _look(catalog, [cursor.text()], local)
        elif cursor.take(_PATH) and (cursor.take("=") or cursor.take("to")):
            _look(catalog, list(_names(cursor, catalog)), local)
    elif _sets_path(statement):
        if not cursor.take("select"):
            raise cursor.wrong("it sets search_path", _HINT)
        cursor.take("pg_catalog", ".")
        cursor.expect("set_config")
        bracket = cursor.bracketed()
        parts = bracket.parts()
        plain = len(parts) == 3 and parts[0].end - parts[0].at == parts[2].end - parts[2].at == 1
        if not plain or not cursor.done:
            raise cursor.wrong("it sets search_path in a way that is not followed", _HINT)
        local = parts[2].sees("true")
        if local and not inside:
            raise cursor.wrong("search_path for a transaction that the file does not open", "write BEGIN … COMMIT")
        _look(catalog, list(_listed(parts[1].text())), local)


def _sets_path(statement: SqlStatement) -> bool:
    """Whether it calls set_config with that setting's name, or with a name that is not a literal."""
    for at, word in enumerate(statement.words[:-3]):
        if word.kind in ("word", "name") and word.text == "set_config":
            name, behind = statement.words[at + 2 : at + 4]
            plain = name.kind == "text" and behind.text == ","
            if not plain or name.text.lower() in (_PATH, _STRINGS):
                return True
    return False


def _names(cursor: Cursor, catalog: Catalog) -> Iterator[str]:
    if cursor.sees("default"):
        yield from catalog.home
        return
    for part in cursor.parts():
        word = part.peek()
        if word is not None:
            yield kept(word.text)


def _listed(text: str) -> Iterator[str]:
    """The names in a setting's text."""
    for statement in statements(text):
        for part in Cursor.over(statement).parts():
            yield part.name()


def _look(catalog: Catalog, names: Sequence[str], local: bool) -> None:
    """Set the schemas of the path; an empty path allows qualified names only."""
    path = tuple(TEMP if name.startswith(TEMP) else name for name in names if name not in _PASSED)
    if local:
        catalog.outside = catalog.outside or catalog.path
    else:
        catalog.outside = None
    if path:
        catalog.look(path)


def chains(statement: SqlStatement) -> bool:
    """`COMMIT AND CHAIN`: the next transaction begins at once."""
    texts = [word.text for word in statement.words if word.kind == "word"]
    return texts[-2:] == ["and", "chain"]


def executed(statement: SqlStatement) -> SqlStatement | None:
    """The statement that EXPLAIN ANALYZE runs; None for a plain EXPLAIN or another statement."""
    cursor = Cursor.over(statement)
    if not cursor.take("explain"):
        return None
    runs = False
    if cursor.sees("("):
        for option in cursor.bracketed().parts():
            if option.take("analyze") or option.take("analyse"):
                runs = str(option).strip("'\"").lower() not in ("false", "off", "0")
    else:
        runs = cursor.take("analyze") or cursor.take("analyse")
        cursor.take("verbose")
    inner = statement.words[cursor.at : cursor.end]
    return SqlStatement(inner, statement.source) if runs and inner else None
