"""Statements that change no column: recognized by their first words, each with the reason why stores can ignore it.

What begins like none of these is not understood. So are the ones that can hide a change of a column.
"""

from typing import Final

from console.propagation.observe.catalog import Catalog
from console.propagation.sql.cursor import Cursor, Name

NEW: Final = "a new table gets its place in the stores when replication.yaml names it"
STAYS: Final = "for the stores it stays one table: differences of its columns are reported"
GONE: Final = "its rows stay in the stores until somebody drops them there"
_DATA: Final = "it changes rows, which replicate as rows"
DATA: Final = ("data", _DATA)
_EMPTIES: Final = (
    "it empties the table and deletes no row: the rows stay in the stores until somebody deletes them there"
)
_UNPUBLISHED: Final = "rows of the tables that it takes out arrive no more; those that are in the stores stay"
_ALONE: Final = "it concerns PostgreSQL alone"
VIEWS: Final = "views do not replicate"

# no change and not worth a line: settings, transactions, locks, maintenance
SILENT: Final = frozenset(
    (
        "set", "reset", "show", "discard", "lock", "begin", "start", "commit", "end", "rollback", "abort", "savepoint",
        "release", "listen", "unlisten", "notify", "checkpoint", "vacuum", "analyze", "analyse", "load", "fetch",
        "close", "declare", "move", "deallocate",
    )
)  # fmt: skip
_STARTS: Final = {
    **dict.fromkeys(
        ("select", "insert", "update", "delete", "merge", "with", "values", "copy", "table", "explain"),
        DATA,
    ),
    "(": DATA,
    "truncate": ("data", _EMPTIES),
    "refresh": ("refresh", VIEWS),
    "comment": ("comment", _ALONE),
    "grant": ("privilege", _ALONE),
    "revoke": ("privilege", _ALONE),
    "security": ("privilege", _ALONE),
    "reassign": ("privilege", _ALONE),
    "reindex": ("index", _ALONE),
    "cluster": ("storage", _ALONE),
    "import": ("foreign_table", _ALONE),
}
# objects of CREATE, ALTER and DROP → the kind's name; longer beginnings first
_OBJECTS: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("unique", "index"), "index"),
    (("index",), "index"),
    (("materialized", "view"), "view"),
    (("recursive", "view"), "view"),
    (("view",), "view"),
    (("foreign", "data", "wrapper"), "foreign_table"),
    (("foreign", "table"), "foreign_table"),
    (("server",), "foreign_table"),
    (("user", "mapping"), "foreign_table"),
    (("event", "trigger"), "trigger"),
    (("constraint", "trigger"), "trigger"),
    (("trigger",), "trigger"),
    (("function",), "function"),
    (("procedure",), "function"),
    (("routine",), "function"),
    (("aggregate",), "function"),
    (("cast",), "function"),
    (("conversion",), "function"),
    (("transform",), "function"),
    (("operator",), "operator"),
    (("access", "method"), "operator"),
    (("text", "search"), "text_search"),
    (("trusted", "language"), "function"),
    (("trusted", "procedural", "language"), "function"),
    (("procedural", "language"), "function"),
    (("language",), "function"),
    (("sequence",), "sequence"),
    (("policy",), "policy"),
    (("rule",), "rule"),
    (("extension",), "extension"),
    (("schema",), "schema"),
    (("collation",), "collation"),
    (("statistics",), "statistics"),
    (("publication",), "publication"),
    (("subscription",), "publication"),
    (("tablespace",), "storage"),
    (("database",), "database"),
    (("system",), "database"),
    (("role",), "privilege"),
    (("user",), "privilege"),
    (("group",), "privilege"),
    (("default", "privileges"), "privilege"),
    (("large", "object"), "data"),
    (("type",), "type"),
    (("domain",), "type"),
    (("table",), "table"),
)
_REASONS: Final = {"view": VIEWS, "data": _DATA}
# with CASCADE these drop no column; any other may drop columns that the statement does not name
_HARMLESS: Final = (
    "index",
    "sequence",
    "trigger",
    "rule",
    "policy",
    "statistics",
    "publication",
    "storage",
    "database",
)


def ignored(cursor: Cursor, catalog: Catalog) -> tuple[str, str] | None:
    """The kind of a statement that changes no column, and the reason to ignore it; None for an unknown statement.

    raises  NotUnderstood for a statement that may hide a change of a column
    """
    first = cursor.peek()
    assert first is not None
    if first.kind not in ("word", "sign"):
        return None
    if first.text in ("do", "call", "execute"):
        return _hiding(cursor, catalog)
    if first.text in ("create", "alter", "drop"):
        return _object(Cursor(cursor.statement, cursor.at, cursor.end), first.text, catalog)
    return _STARTS.get(first.text)


def _object(cursor: Cursor, verb: str, catalog: Catalog) -> tuple[str, str] | None:
    cursor.at += 1
    cursor.take("or", "replace")
    for word in ("global", "local", "temporary", "temp", "unlogged"):
        cursor.take(word)
    for words, kind in _OBJECTS:
        if cursor.take(*words):
            if verb == "drop" and _cascades(cursor) and not (kind in _HARMLESS or _drops_views(kind, cursor, catalog)):
                raise cursor.wrong(
                    f"{verb} {words[0]} … cascade drops columns without naming them",
                    "drop the columns by name first, then leave CASCADE out",
                )
            if (verb, kind) == ("alter", "publication") and "drop" in {word.text for word in cursor.statement.words}:
                return "alter_publication", _UNPUBLISHED
            return f"{verb}_{kind}", _REASONS.get(kind, _ALONE)
    if cursor.sees("owned"):
        raise cursor.wrong("DROP OWNED drops tables without naming them", "drop them by name")
    return None


def _drops_views(kind: str, cursor: Cursor, catalog: Catalog) -> bool:
    """Dropping a view drops no column, unless a column has a view's rows for values."""
    types = {column.postgres for table in catalog.tables.values() for column in table.columns}
    return kind == "view" and not any(
        shown.rpartition(".")[2].removesuffix("[]") == word.text
        for shown in types
        for word in cursor.statement.words[cursor.at : cursor.end]
        if word.kind in ("word", "name")
    )


def _cascades(cursor: Cursor) -> bool:
    last = cursor.statement.words[cursor.end - 1]
    return last.kind == "word" and last.text == "cascade"


def _hiding(cursor: Cursor, catalog: Catalog) -> tuple[str, str]:
    """A DO block is data if nothing in it can change a table; CALL and EXECUTE run code that is not in the file."""
    from console.propagation.observe.functions.calls import harmless_body

    words = cursor.statement.words
    languages = [
        words[at + 1].text for at, word in enumerate(words[:-1]) if word.kind == "word" and word.text == "language"
    ]
    bodies = [word.text for word in words if word.kind == "text" and word.text not in languages]
    if not cursor.sees("do") or set(languages) - {"plpgsql"} or not harmless_body(bodies, catalog):
        hint = "write changes of tables as separate statements"
        what = "a DO block that can change tables" if cursor.sees("do") else "what it runs is not in the file"
        raise cursor.wrong(what, hint)
    return DATA


def updated(cursor: Cursor, catalog: Catalog) -> tuple[Name, frozenset[str]] | None:
    """The table of an UPDATE and the columns that it sets in every row; None for another statement."""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if not ahead.take("update"):
        return None
    ahead.take("only")
    name = catalog.full(ahead.qualified())
    ahead.until("set")
    if not ahead.take("set"):
        raise ahead.wrong("expected SET")
    values = ahead.until("from", "where", "returning")
    if ahead.sees_any("from", "where"):
        return name, frozenset()
    columns: set[str] = set()
    for part in values.parts():
        names = part.bracketed().parts() if part.sees("(") else [part]
        columns.update(one.name() for one in names)
    return name, frozenset(columns)
