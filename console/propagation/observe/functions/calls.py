"""Code that a statement runs without containing it: functions, triggers, rules. Anything that may alter a table is refused.

source  PostgreSQL 15 documentation, CREATE FUNCTION, CREATE TRIGGER, CREATE RULE, §4.2.6 (function calls)
"""

from collections.abc import Iterator, Sequence
from typing import Final

from console.propagation.observe.catalog import Catalog
from console.propagation.observe.functions.builtin import FUNCTIONS, SYNTAX
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.lexer import NotUnderstood, SqlStatement, Token, statements

_HINT: Final = (
    "write changes of tables as separate statements; give the files that define the called functions (--schema)"
)
_LANGUAGES: Final = ("sql", "plpgsql")
# words of a routine that changes a table, or the path along which names are looked up
_CHANGES: Final = frozenset(
    ("alter", "create", "drop", "execute", "call", "do", "rename", "import", "prepare", "set_config", "search_path")
)
_RUNS: Final = (
    "select", "insert", "update", "delete", "merge", "with", "values", "table", "copy", "explain", "declare", "refresh", "(",
)  # fmt: skip
_WRITES: Final = ("insert", "update", "delete", "merge", "copy", "truncate")
# words after which a name in front of a bracket is not a function's
_NAMED: Final = ("into", "as", "references", "::", "update", "table")
_LEAD: Final = """
    all analyse analyze and any array as asc asymmetric between by call case check collate column constraint default
    desc distinct do elsif else end escape except execute exists exit filter for from full group having if ilike in
    inner intersect into is isnull join lateral left like limit loop natural not notice notnull null offset on only
    or order outer over overlaps perform placing query raise range recursive return returning right rows select set
    similar some strict symmetric tablesample then to union update using value values verbose when where while
    window with
"""
# other words than these in front of a name make it an alias: `FROM t x (a, b)`
_LEADING: Final = frozenset(_LEAD.split())


def refuse_hidden(statement: SqlStatement, catalog: Catalog) -> None:
    """raises NotUnderstood for a statement that runs code which may alter a table, or which no file defines"""
    words, first = statement.words, statement.words[0]
    runs = first.kind in ("word", "sign") and first.text in _RUNS
    texts = [word.text for word in words[:8] if word.kind == "word"]
    if _defines(texts):
        return
    runs = runs or (first.text == "create" and _asks(statement))
    for name, word in _called(words[1:] if first.text == "explain" else words):  # brackets behind it are its options
        safe = _harmless(name, catalog)
        if safe is False or (safe is None and runs):
            raise _wrong(word, f"{name}(…) may alter a table: no file defines it")
    if not runs and first.text not in _WRITES:
        return
    for word in words:
        if word.kind in ("word", "name") and catalog.routines.get(word.text) is False:
            raise _wrong(word, f"{word.text} may run code that alters a table")
    writes = next((word for word in words if word.kind == "word" and word.text in _WRITES), None)
    if writes is not None and catalog.armed:
        raise _wrong(writes, f"a trigger or rule that may alter a table ({catalog.armed})")
    if writes is not None:
        _refuse_catalogs(words)


def _defines(texts: Sequence[str]) -> bool:
    """Whether a statement only defines or names a function, without running it."""
    kinds = ("function", "procedure", "routine", "view", "rule", "trigger", "aggregate", "index")
    if texts[:1] == ["create"]:
        return any(kind in texts for kind in kinds) and "materialized" not in texts
    return (texts[:1] in (["alter"], ["drop"]) and any(kind in texts[:3] for kind in kinds)) or texts[:1] in (
        ["comment"], ["grant"], ["revoke"], ["security"], ["do"], ["call"], ["execute"],
    )  # fmt: skip


def _asks(statement: SqlStatement) -> bool:
    """CREATE TABLE … AS and CREATE MATERIALIZED VIEW … AS run their query."""
    cursor = Cursor.over(statement)
    texts = [word.text for word in statement.words[:6] if word.kind == "word"]
    cursor.until("as")
    return not cursor.done and ("table" in texts or "materialized" in texts)


def _refuse_catalogs(words: Sequence[Token]) -> None:
    """Catalogs are tables too: writing to them alters tables without DDL."""
    for at, word in enumerate(words):
        into = word.kind == "word" and word.text in ("into", "update", "from", "copy", "only")
        target = words[at + 1 : at + 4]
        if into and target and target[0].text in ("pg_catalog", "information_schema"):
            target = target[2:]
        if into and target and target[0].kind in ("word", "name") and target[0].text.startswith("pg_"):
            first = words[0].text
            if first in _WRITES and (word.text != "from" or first == "delete"):
                raise _wrong(target[0], f"a change of PostgreSQL's own catalog {target[0].text}")


def remember(statement: SqlStatement, catalog: Catalog) -> None:
    """Remember functions, views, triggers and rules for later statements that run them.

    raises  NotUnderstood for code that would run with every later statement
    """
    cursor = Cursor.over(statement)
    if not cursor.take("create"):
        return
    cursor.take("or", "replace")
    for word in ("temporary", "temp", "recursive", "materialized", "constraint"):
        cursor.take(word)
    if cursor.take("function") or cursor.take("procedure"):
        name = cursor.qualified()[1]
        catalog.routines[name] = catalog.routines.get(name, True) and _is_harmless(statement, name, catalog)
    elif cursor.take("view"):
        if any(_harmless(name, catalog) is not True for name, _ in _called(statement.words[cursor.at + 1 :])):
            catalog.routines[cursor.qualified()[1]] = False
    elif cursor.take("event", "trigger"):
        function = _executed(statement)
        if _harmless(function, catalog) is not True:
            raise cursor.wrong(f"from here on {function} runs with every statement, and may alter tables", _HINT)
    elif cursor.take("trigger"):
        if _harmless(_executed(statement), catalog) is not True:
            catalog.armed = f"{cursor.name()}, of {_executed(statement)}"
    elif cursor.take("rule"):
        name = cursor.name()
        if name == "_RETURN":
            raise cursor.wrong("a rule that turns a table into a view", "create a view")
        if any(_harmless(called, catalog) is not True for called, _ in _called(statement.words[cursor.at :])):
            catalog.armed = name


def _executed(statement: SqlStatement) -> str:
    """The function behind EXECUTE FUNCTION."""
    cursor = Cursor.over(statement)
    cursor.until("execute")
    cursor.take("execute")
    if not (cursor.take("function") or cursor.take("procedure")):
        raise cursor.wrong("expected EXECUTE FUNCTION")
    return cursor.qualified()[1]


def _is_harmless(statement: SqlStatement, name: str, catalog: Catalog) -> bool:
    cursor = Cursor.over(statement)
    cursor.until("language")
    language = cursor.peek(1)
    if not cursor.done and (language is None or language.text.lower() not in _LANGUAGES):
        return False
    head = Cursor.over(statement)
    head.until("begin", "return")
    bodies = [word.text for word in statement.words if word.kind == "text" and word is not language]
    return harmless_body(bodies, catalog, name) and not _hides(statement.words[head.at :], catalog, name)


def harmless_body(bodies: Sequence[str], catalog: Catalog, name: str = "") -> bool:
    """Whether a routine's body provably changes no table."""
    try:
        inner = [statement.words for body in bodies for statement in statements(body, headings=False)]
    except NotUnderstood:
        return False
    return not any(_hides(words, catalog, name) for words in inner)


def _hides(words: Sequence[Token], catalog: Catalog, name: str) -> bool:
    if any(word.kind == "word" and word.text in _CHANGES for word in words):
        return True
    if any(word.kind == "text" and word.text.lower() == "search_path" for word in words):
        return True
    if any(
        word.kind in ("word", "name") and word.text.startswith("pg_") and word.text not in FUNCTIONS for word in words
    ):
        return any(word.kind == "word" and word.text in _WRITES for word in words)
    return any(called != name and _harmless(called, catalog) is not True for called, _ in _called(words))


def _harmless(name: str, catalog: Catalog) -> bool | None:
    """Whether a function changes no table; None if that is not known."""
    known = catalog.routines.get(name)
    if known is not None:
        return known
    return True if name in FUNCTIONS or any(defined[1] == name for defined in catalog.types.defined) else None


def _called(words: Sequence[Token]) -> Iterator[tuple[str, Token]]:
    """The called functions: names in front of brackets."""
    for at, word in enumerate(words[:-1]):
        behind = words[at + 1]
        if word.kind not in ("word", "name") or behind.kind != "sign" or behind.text != "(":
            continue
        if word.kind == "word" and word.text in SYNTAX:
            continue
        start = at
        while start >= 2 and words[start - 1].text == "." and words[start - 1].kind == "sign":
            start -= 2
        before = words[start - 1] if start else None
        if before is None or not (_names(before) or _is_common(words, at, before)):
            yield word.text, word


def _names(before: Token) -> bool:
    """The word before a name makes it a table, a type or an alias, not a function."""
    if before.kind == "word":
        return before.text in _NAMED or before.text not in _LEADING
    return before.kind in ("name", "text", "number") or before.text in ("::", ")", "]")


def _is_common(words: Sequence[Token], at: int, before: Token) -> bool:
    """`WITH w (a, b) AS (…)`"""
    if words[0].text != "with" or before.text not in ("with", "recursive", ","):
        return False
    end = next((n for n in range(at, len(words)) if words[n].text == ")" and words[n].kind == "sign"), len(words))
    plain = all(word.kind in ("word", "name") or word.text == "," for word in words[at + 2 : end])
    return plain and end + 1 < len(words) and words[end + 1].text == "as"


def _wrong(word: Token, message: str) -> NotUnderstood:
    return NotUnderstood(message, word.line, word.column, _HINT)
