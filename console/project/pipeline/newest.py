"""Checks of the file of a table that keeps one row per key, key by key."""

from collections.abc import Iterator

from console.errors import Problem
from console.model.newest import BUCKET, ROW_HASH
from console.model.schema import Kind
from console.project import documents as docs
from console.project.yaml import Document

WITHOUT_ORDER = ("map<", "variant", "interval")


def stored_kind(doc: docs.TableDoc) -> Kind:
    """The kind of a table without its word for how it is read."""
    match doc.kind:
        case "landing" | "aggregate" if not doc.source:
            return doc.kind
        case _:
            return "append"


def key_of(doc: docs.TableDoc) -> tuple[str, ...]:
    """The columns in which equal rows are one; () for other kinds."""
    if doc.kind == "distinct":
        return tuple(doc.columns)
    return tuple(doc.key) if doc.kind == "latest" else ()


def problems(name: str, doc: docs.TableDoc, source: Document) -> Iterator[Problem]:
    def wrong(path: str, message: str, hint: str, code: str = "P012") -> Problem:
        return Problem(code=code, message=f"{path}: {message}", where=source.place((path,)), hint=hint, node=name)

    for path, given in (("key", doc.key), ("order_by", doc.order_by)):
        if given and doc.kind != "latest":
            yield wrong(path, "only a table of kind latest has one", "write `kind: latest`, or remove the line")
        for column in (c for c in given if c not in doc.columns):
            yield wrong(path, f"{name} has no column `{column}`", "name a declared column", "P033")
        for column in {c for c in given if given.count(c) > 1}:
            yield wrong(path, f"`{column}` occurs twice", "remove one")
        if not given and doc.kind == "latest":
            what = "one row of each is kept" if path == "key" else "the row with the greatest value is the newest"
            yield wrong(path, f"a table of kind latest needs it: {what}", f"write `{path}: COLUMN`")
    if doc.kind in ("latest", "distinct"):
        yield from _of_rows(name, doc, source)


def _of_rows(name: str, doc: docs.TableDoc, source: Document) -> Iterator[Problem]:
    key = key_of(doc)
    for column, spec in doc.columns.items():
        at = source.place(("columns", column))
        if column.lower() in (ROW_HASH, BUCKET):
            message = f"columns: `{column}` is reserved for the place of a row"
            yield Problem(code="P013", message=message, where=at, hint="rename the column", node=name)
        if any(word in spec.type for word in WITHOUT_ORDER):
            message = f"columns: `{column}` is {spec.type}, which has no order and no hash: equal rows could not be recognised"
            yield Problem(code="P012", message=message, where=at, hint="store it as text: to_json(…)", node=name)
    for i, column in enumerate(doc.partition_by):
        if column in doc.columns and column not in key:
            message = f"partition_by: `{column}` is not part of the key, and a newer row of the same key may be in another partition"
            hint = "partition by a column of the key, or remove the line: a hash of the key is the default"
            yield Problem(code="P012", message=message, where=source.place(("partition_by", i)), hint=hint, node=name)
    if doc.retention is not None and doc.kind == "latest" and (not doc.order_by or doc.order_by[0] not in _time(doc)):
        message = "retention: it would delete the newest row of a key before older ones, which would be shown again"
        hint = "order by the time column first: order_by: [TIME, …], time: TIME"
        yield Problem(code="P012", message=message, where=source.place(("retention",)), hint=hint, node=name)


def _time(doc: docs.TableDoc) -> tuple[str, ...]:
    """The declared time column, else the first timestamp column."""
    stamps = [column for column, spec in doc.columns.items() if spec.type.startswith("timestamp")]
    return (doc.time,) if doc.time is not None else tuple(stamps[:1])
