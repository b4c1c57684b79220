"""Keys and files that are accepted without effect: each causes a warning, so that nobody relies on it (P050).

A key is either used by the code or listed here; `tests/project/test_vocabulary.py` compares both with the documents.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from console.errors import Problem
from console.model.region import STORE_SECRETS, WAKE_SECONDS
from console.project import documents as docs
from console.project.yaml import Document, Keys
from console.remedy import DropKey, Edit, Remedy

_BY_HAND = "nothing runs on a schedule"
UNREAD: dict[type[docs.Doc], dict[Keys, tuple[str, str]]] = {
    docs.RegionDoc: {
        ("catalog",): ("no table is published to a catalog", "read through endpoints or console.open_release"),
    },
    docs.CopyDoc: {("schedule",): (_BY_HAND, "call `console copy` from a scheduler of your own")},
    docs.SinkDoc: {("schedule",): (_BY_HAND, "call `console sink` from a scheduler of your own")},
}
"""Document → path of a key → the fact that makes it ineffective, and the alternative."""

_UNQUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_PARAMETER = re.compile(r"(?<![\w:]):([A-Za-z_]\w*)")


class _Unread(NamedTuple):
    path: Keys
    why: str
    hint: str


def unread(doc: docs.Doc, document: Document, node: str = "") -> tuple[Problem, ...]:
    """A warning for each key of a valid file that has no effect there."""
    listed = [_Unread(path, *reason) for path, reason in UNREAD.get(type(doc), {}).items()]
    if isinstance(doc, docs.RegionDoc) and not doc.prices.currency:
        why = "without `currency` a price is shown nowhere"
        listed.append(_Unread(("prices",), why, "name its currency: prices: {currency: EUR, …}"))
    if isinstance(doc, docs.RegionDoc) and not doc.policy.watch:
        why, hint = "without `watch` no check continues after a promotion", "say for how long: policy: {watch: 30m, …}"
        listed += [_Unread(("policy", key), why, hint) for key in ("on_breach", "watch_query")]
    if isinstance(doc, docs.RegionDoc) and doc.backfill_spark and not doc.backfill_spark.names_one:
        why = "without `master` all batches of history run on the region's `spark`"
        listed.append(_Unread(("backfill_spark",), why, "name its master: backfill_spark: {master: …}"))
    if isinstance(doc, docs.RegionDoc):
        listed += _secrets(doc)
    if isinstance(doc, docs.RegionDoc) and (lag := doc.follow.lag) is not None and lag < WAKE_SECONDS:
        why = f"rows are to be readable within {lag:g} s (`lag`, which wins), and a Spark that sleeps takes up to {WAKE_SECONDS:g} s"
        hint = f"write a `lag` of {WAKE_SECONDS:g}s or more, or `idle: never`"
        listed += [_Unread(("follow", "idle"), why, hint)] if doc.follow.idle is not None else []
    if isinstance(doc, docs.TableDoc):
        listed += _of_table(doc, document)
    return tuple(_warning(one, document, node) for one in listed if document.get(one.path) is not None)


def _secrets(doc: docs.RegionDoc) -> Iterator[_Unread]:
    """Names that are no credentials of a bucket of S3, or are not needed."""
    if doc.secrets and not doc.warehouse.startswith(("s3://", "s3a://")):
        yield _Unread(("secrets",), "only a warehouse in a bucket of S3 needs them", "leave them out")
        return
    for name in doc.secrets:
        if name not in STORE_SECRETS:
            yield _Unread(("secrets", name), "nothing reads it", f"its name is one of {', '.join(STORE_SECRETS)}")


def _of_table(doc: docs.TableDoc, document: Document) -> Iterator[_Unread]:
    """Keys that a table of another kind, or with other keys beside them, would use."""
    if doc.kind == "landing" and not doc.source:
        for key in ("backfill", "read_time_days"):
            yield _Unread((key,), "a landing table is computed from nothing", "write it in the tables below")
        why = "a landing table accepts lines as they are sent"
        yield _Unread(("expectations",), why, "expect it of the tables that are fed from it")
        for name, column in doc.columns.items() if not doc.managed else ():
            if column.default is not None:
                why = "a table that others write is read as it is"
                yield _Unread(("columns", name, "default"), why, "coalesce in an adapter in front of it: console adapt")
        return
    if doc.read_time_days and doc.retention is None:
        why = "without `retention` no row of the table ever ends"
        yield _Unread(("read_time_days",), why, "declare `retention`, or write `backfill: read`")
    if doc.kind in ("aggregate", "latest", "distinct"):
        why = "no feed is driven by a table that is merged when it is read"
        yield _Unread(("on_rewrite",), why, "write it in the table that it is fed from")
    for name, column in doc.columns.items():
        if not column.nullable:
            why, hint = "no row is refused for a NULL there", "filter or coalesce in the query that feeds the table"
            yield _Unread(("columns", name, "nullable"), why, hint)


def _warning(unread: _Unread, document: Document, node: str) -> Problem:
    key = ".".join(map(str, unread.path))
    where = document.place(unread.path, key=True)
    remedies = (DropKey(node=node, key=key), Edit(node=node, how=unread.hint))
    return _problem(f"`{key}` has no effect: {unread.why}", where, remedies, node)


def _problem(message: str, where: str, remedies: tuple[Remedy, ...], node: str = "") -> Problem:
    return Problem(code="P050", message=message, where=where, severity="warn", node=node, remedies=remedies)


def unused_variables(head: Document, texts: Iterable[str]) -> tuple[Problem, ...]:
    """A warning for each variable that no SQL of the pipeline names. texts: all of its SQL"""
    named = {name for text in texts for name in _PARAMETER.findall(_UNQUOTED.sub(" ", text))}
    return tuple(
        _problem(
            f"the variable `{name}` has no effect: no SQL of the pipeline names :{name}",
            head.place(("variables", name), key=True),
            (DropKey(node="", key=f"variables.{name}"), Edit(node="", how=f"write :{name}")),
        )
        for name in head.get(("variables",)) or ()
        if name not in named
    )
