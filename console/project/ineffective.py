"""Keys and files that are accepted and have no effect: each is a warning, so that nobody relies on it (P050).

A key is either read by something or listed here; `tests/project/test_vocabulary.py` compares both with the documents.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from console.errors import Problem
from console.project import documents as docs
from console.project.yaml import Document, Keys

_GATE = "the gate opens as `promote` says, once the checks have passed"
_BY_HAND = "nothing runs on a schedule"
UNREAD: dict[type[docs.Doc], dict[Keys, tuple[str, str]]] = {
    docs.RegionDoc: {
        ("backfill_spark",): ("batches of history run on the region's `spark`", "size `spark` for them"),
        ("catalog",): ("no table is published to a catalog", "read through endpoints or console.open_release"),
        ("secrets",): ("nothing reads them", "give them to Spark and its storage where the agent runs"),
        ("policy", "min_soak"): (_GATE, "wait at the gate: `promote: ask`"),
        ("policy", "soak"): (_GATE, "wait at the gate: `promote: ask`"),
        ("policy", "approvals"): (_GATE, "one person confirms: `promote: ask`"),
        ("policy", "ticket"): (_GATE, "name the ticket in a note: console note"),
    },
    docs.TableDoc: {
        ("expectations",): ("no row is compared with them", "filter or coalesce in the query that feeds the table"),
    },
    docs.CopyDoc: {("schedule",): (_BY_HAND, "call `console copy` from a scheduler of your own")},
    docs.SinkDoc: {("schedule",): (_BY_HAND, "call `console sink` from a scheduler of your own")},
}
"""Document → path of a key → what holds instead, and what does what the key promises."""

_UNQUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_PARAMETER = re.compile(r"(?<![\w:]):([A-Za-z_]\w*)")


class _Unread(NamedTuple):
    path: Keys
    why: str
    hint: str


def unread(doc: docs.Doc, document: Document, node: str = "") -> tuple[Problem, ...]:
    """A warning for each key of a valid file that does nothing there."""
    listed = [_Unread(path, *reason) for path, reason in UNREAD.get(type(doc), {}).items()]
    if isinstance(doc, docs.RegionDoc) and not doc.prices.currency:
        why = "without `currency` a price is shown nowhere"
        listed.append(_Unread(("prices",), why, "or name its currency: prices: {currency: EUR, …}"))
    if isinstance(doc, docs.TableDoc):
        listed += _of_table(doc, document)
    return tuple(_warning(one, document, node) for one in listed if document.get(one.path) is not None)


def _of_table(doc: docs.TableDoc, document: Document) -> Iterator[_Unread]:
    """Keys that a table of another kind, or with other keys beside them, would use."""
    if doc.kind == "landing":
        for key in ("backfill", "read_time_days"):
            yield _Unread((key,), "a landing table is computed from nothing", "write it in the tables below")
        return
    if doc.read_time_days and doc.retention is None:
        why = "without `retention` no row of the table ever ends"
        yield _Unread(("read_time_days",), why, "declare `retention`, or write `backfill: read`")
    if doc.kind == "aggregate":
        why = "no feed is driven by an aggregate, whose rows are partial states"
        yield _Unread(("on_rewrite",), why, "write it in the table that the aggregate is fed from")
    for name, column in doc.columns.items():
        if not column.nullable:
            why, hint = "no row is refused for a NULL there", "filter or coalesce in the query that feeds the table"
            yield _Unread(("columns", name, "nullable"), why, hint)


def _warning(unread: _Unread, document: Document, node: str) -> Problem:
    key = ".".join(map(str, unread.path))
    where = document.place(unread.path, key=True)
    return _problem(f"`{key}` has no effect: {unread.why}", where, f"remove it; {unread.hint}", node)


def _problem(message: str, where: str, hint: str, node: str = "") -> Problem:
    return Problem(code="P050", message=message, where=where, hint=hint, severity="warn", node=node)


def unused_variables(head: Document, texts: Iterable[str]) -> tuple[Problem, ...]:
    """A warning for each variable that no SQL of the pipeline names. texts: all of its SQL"""
    named = {name for text in texts for name in _PARAMETER.findall(_UNQUOTED.sub(" ", text))}
    return tuple(
        _problem(
            f"the variable `{name}` has no effect: no SQL of the pipeline names :{name}",
            head.place(("variables", name), key=True),
            f"remove it, or write :{name}",
        )
        for name in head.get(("variables",)) or ()
        if name not in named
    )


def unread_file(path: str) -> Problem:
    """A file of a pipeline that belongs to the project and that nothing reads. path: below the project"""
    message = f"{path} has no effect: neither recorded calls nor tests of a pipeline are run"
    return _problem(message, f"{path}:1:1", "compare the results of an edit: console plan --witness, console compare")
