"""Adapters: landing tables of ours in front of one that others write, `kind: landing` with a `source`.

To everything behind the files an adapter is a table that one query feeds: it can change like any other, while the table
that others write stays as it is.
"""

from collections.abc import Iterator, Mapping

from console.errors import Problem
from console.model.pipeline import Materialization
from console.model.schema import quoted
from console.project import documents as docs
from console.project.names import did_you_mean
from console.project.yaml import Document

_AS_WRITTEN = "SELECT {columns} FROM {source}"  # as in a file of materializations/: parsed and checked like one
_NOT_THERE = ("managed", "was", "accepts", "accepts_until")  # keys of tables that lines are sent to


def feed(table: str, doc: docs.TableDoc, source: Document) -> Materialization:
    """The query that feeds an adapter: its `select`, else its columns by name, over every row of the source."""
    columns = doc.select.strip() or ", ".join(map(quoted, doc.columns))
    where = source.place(("select",) if doc.select else ("source",))
    sql = _AS_WRITTEN.format(columns=columns, source=quoted(doc.source))
    return Materialization(name=table, into=table, sql=sql, where=where)


def problems(table: str, doc: docs.TableDoc, source: Document, tables: Mapping[str, Document]) -> Iterator[Problem]:
    """The problems of `source` and `select`. tables: those of the pipeline"""

    def wrong(code: str, key: str, message: str, hint: str) -> Problem:
        return Problem(code=code, message=f"{key}: {message}", where=source.place((key,)), hint=hint, node=table)

    if doc.select and not doc.source:
        hint = "remove the line: any other table has its query in materializations/"
        yield wrong("P012", "select", "only an adapter, a landing table with `source`, has one", hint)
    if not doc.source:
        return
    if doc.kind != "landing":
        yield wrong("P012", "source", "only a landing table can be in front of another one", "kind: landing")
        return
    for key in _NOT_THERE:
        if getattr(doc, key):
            yield wrong("P012", key, "nobody sends lines to an adapter: it is fed from its source", "remove the line")
    landing = {name for name, other in tables.items() if other.data.get("kind") == "landing" and name != table}
    foreign = {name for name in landing if not tables[name].data.get("source")}
    if doc.source not in foreign:
        hint = did_you_mean(doc.source, foreign, "landing tables")
        yield wrong("P031", "source", f"`{doc.source[:60]}` is not a landing table that others write", hint)
    elif tables[doc.source].data.get("managed") is True:
        hint = f"change {doc.source} itself: columns of a managed landing table change in place"
        yield wrong("P031", "source", f"{doc.source} is managed, and needs no adapter", hint)
