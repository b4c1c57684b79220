"""Kinds of edits, each with its effect on rows and values, known by construction and never from the planner.

What an edit needs is `own` where the older rows of the table itself give the new values or rows, `source` where only the
rows of its source do, and `none` where nothing of them changes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from console.model.schema import Accepts, Column, Table
from tests.closure.shapes import CLEAN, Fed, World

Needs = Literal["none", "own", "read", "source"]
Rows = Literal["same", "fewer", "more"]
MEANING = "* EXCEPT (spare), CASE WHEN spare > 5 THEN 5 ELSE spare END AS spare"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One row of docs/changes.md.

    needs   where values that are new or other come from, `read` if they are its own and computed whenever they are read;  rows: what becomes of the set of rows
    groups  the groups of an aggregate are others
    node    the table of which the page tells, where it is not the edited one
    """

    name: str
    table: str
    apply: Callable[[World], World]
    needs: Needs = "none"
    columns: tuple[str, ...] = ()
    rows: Rows = "same"
    groups: bool = False
    node: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"


def _fed(table: str, change: Callable[[Fed], Fed]) -> Callable[[World], World]:
    return lambda world: world.with_fed(change(world.table(table)))


def _landing(change: Callable[[Table], Table], table: str = "events") -> Callable[[World], World]:
    return lambda world: world.with_landing(change(world.land(table)))


def _of_rows(name: str, prefix: str = "") -> list[Kind]:
    """Of a table of rows. prefix: of its source's columns"""
    n, doc = f"{prefix}n", f"{prefix}doc"
    given = "agent" if name == "hits" else "owner"

    def kind(
        what: str, change: Callable[[Fed], Fed], *columns: str, needs: Needs = "none", rows: Rows = "same"
    ) -> Kind:
        return Kind(name=what, table=name, apply=_fed(name, change), needs=needs, columns=columns, rows=rows)

    lang = f"get_json_object({doc}, '$.lang')"
    return [
        kind("a column from its source", lambda t: t.with_item("lang", "string", lang), "lang", needs="source"),
        kind("a column from its source, with a default", lambda t: replace(
            t.with_item("lang", "string", lang), defaults=(*t.defaults, ("lang", "'?'"))), "lang", needs="source"),
        kind("a column that its own columns give", lambda t: t.with_item("twice", "int", f"{n} * 2"), "twice", needs="own"),
        kind("such a column, read from them", lambda t: replace(
            t.with_item("twice", "int", f"{n} * 2"), backfill_read=True), "twice", needs="read"),
        kind("a column that is the same for all rows", lambda t: t.with_item("origin", "string", "'web'"), "origin", needs="own"),
        kind("a column dropped", lambda t: t.without("id")),
        kind("a column renamed", lambda t: replace(t, items=tuple(
            ("key", kind_, sql) if own == "id" else (own, kind_, sql) for own, kind_, sql in t.items))),
        kind("a wider type", lambda t: t.with_item("n", "bigint", n), "n", needs="own"),
        kind("a wider type by a cast", lambda t: t.with_item("n", "bigint", f"CAST({n} AS BIGINT)"), "n", needs="own"),
        kind("a narrower type", lambda t: t.with_item("n", "smallint", n), "n", needs="own"),
        kind("a type that loses digits", lambda t: t.with_item("n", "boolean", f"CAST({n} AS BOOLEAN)"), "n", needs="own"),
        kind("another expression over its source", lambda t: t.with_item(
            given, "string", f"get_json_object({doc}, '$.other')"), given, needs="source"),
        kind("another expression over its own columns", lambda t: t.with_item("n", "int", f"{n} + 1"), "n", needs="own"),
        kind("a filter over columns that it keeps", lambda t: replace(t, where=(*t.where, f"{n} < 50")), needs="own", rows="fewer"),
        kind("a filter over its source", lambda t: replace(t, where=(*t.where, f"{doc} IS NOT NULL")), needs="source", rows="fewer"),
        kind("another partition_by", lambda t: replace(t, partition_by=())),
        kind("another cluster_by", lambda t: replace(t, cluster_by=("n",))),
        kind("another retention", lambda t: replace(t, retention=30)),
        kind("a column without NULLs", lambda t: replace(
            t.with_item("lang", "string", lang), strict=("lang",)), "lang", needs="source"),
    ]  # fmt: skip


def _of_groups() -> list[Kind]:
    def kind(
        what: str, change: Callable[[Fed], Fed], *columns: str,
        needs: Needs = "none", rows: Rows = "same", groups: bool = False,
    ) -> Kind:  # fmt: skip
        apply = _fed("hourly", change)
        return Kind(name=what, table="hourly", apply=apply, needs=needs, columns=columns, rows=rows, groups=groups)

    def keyed(fed: Fed, name: str, type: str, sql: str) -> Fed:
        return replace(fed.with_item(name, type, sql), grouped=tuple(dict.fromkeys((*fed.grouped, name))))

    def unkeyed(fed: Fed, name: str) -> Fed:
        return replace(fed.without(name), grouped=tuple(key for key in fed.grouped if key != name))

    return [
        kind("a measure", lambda t: t.with_item("low", "int", "min(n)"), "low", needs="source"),
        kind("a measure with a default", lambda t: replace(
            t.with_item("low", "int", "min(n)"), defaults=(("low", "0"),)), "low", needs="source"),
        kind("a measure of states that it keeps", lambda t: t.with_item("share", "double", "sum(n) / count(*)"), "share", needs="own"),
        kind("a measure dropped", lambda t: t.without("top")),
        kind("a measure renamed", lambda t: replace(t, items=tuple(
            ("most", type, sql) if own == "top" else (own, type, sql) for own, type, sql in t.items))),
        kind("a wider measure", lambda t: t.with_item("hits", "bigint", "count(*)"), "hits", needs="own"),
        kind("another expression over the same states", lambda t: t.with_item("mean", "double", "round(avg(n), 1)"), "mean", needs="own"),
        kind("another measure under the name", lambda t: t.with_item("top", "int", "min(n)"), "top", needs="source"),
        kind("a key dropped", lambda t: unkeyed(t, "site"), needs="own", groups=True),
        kind("a key more", lambda t: keyed(t, "agent", "string", "agent"), needs="source", groups=True),
        kind("a key more, with a default", lambda t: replace(
            keyed(t, "agent", "string", "agent"), defaults=(("agent", "'?'"),)), needs="source", groups=True),
        kind("a coarser bucket", lambda t: t.with_item("hour", "timestamp", "date_trunc('DAY', ts)"), needs="own", groups=True),
        kind("a finer bucket", lambda t: t.with_item("hour", "timestamp", "date_trunc('MINUTE', ts)"), needs="source", groups=True),
        kind("a filter over its keys", lambda t: replace(t, where=("site <> 'lab'",)), needs="own", rows="fewer"),
        kind("a filter over its source", lambda t: replace(t, where=("n < 50",)), needs="source", rows="fewer"),
        kind("another cluster_by", lambda t: replace(t, cluster_by=("site",))),
        kind("another retention", lambda t: replace(t, retention=400)),
    ]  # fmt: skip


def _of_newest() -> list[Kind]:
    """Of a table of the newest row of each key. What a filter leaves may have been replaced: such rows come from the source."""

    def kind(
        what: str, change: Callable[[Fed], Fed], *columns: str, needs: Needs = "none", rows: Rows = "same"
    ) -> Kind:
        return Kind(name=what, table="last", apply=_fed("last", change), needs=needs, columns=columns, rows=rows)

    lang, other = "get_json_object(doc, '$.lang')", "get_json_object(doc, '$.other')"
    return [
        kind("a column from its source", lambda t: t.with_item("lang", "string", lang), "lang", needs="source"),
        kind("a column from its source, with a default", lambda t: replace(
            t.with_item("lang", "string", lang), defaults=(*t.defaults, ("lang", "'?'"))), "lang", needs="source"),
        kind("a column that its own columns give", lambda t: t.with_item("twice", "int", "n * 2"), "twice", needs="own"),
        kind("a column that is the same for all rows", lambda t: t.with_item("origin", "string", "'web'"), "origin", needs="own"),
        kind("a column dropped", lambda t: t.without("agent")),
        kind("a column renamed", lambda t: t.renamed("agent", "browser")),
        kind("its key renamed", lambda t: t.renamed("site", "place")),
        kind("a wider type", lambda t: t.with_item("n", "bigint", "n"), "n", needs="own"),
        kind("another expression over its source", lambda t: t.with_item("agent", "string", other), "agent", needs="source"),
        kind("another expression over its own columns", lambda t: t.with_item("n", "int", "n + 1"), "n", needs="own"),
        kind("a filter over columns that it keeps", lambda t: replace(t, where=(*t.where, "n < 50")), needs="source", rows="fewer"),
        kind("a filter over its key", lambda t: replace(t, where=(*t.where, "site <> 'lab'")), needs="own", rows="fewer"),
        kind("another order", lambda t: replace(t, order_by=("n", "id")), needs="source"),
        kind("another key", lambda t: replace(t, key=("site", "agent")), needs="source", rows="more"),
        kind("every row", lambda t: replace(t, key=(), order_by=()), needs="source", rows="more"),
        kind("another partition_by", lambda t: replace(t, partition_by=("site",))),
        kind("another cluster_by", lambda t: replace(t, cluster_by=("ts",))),
        kind("another retention", lambda t: replace(t, retention=30)),
    ]  # fmt: skip


def _of_equal_rows() -> list[Kind]:
    """Of a table in which equal rows are one."""

    def kind(
        what: str, change: Callable[[Fed], Fed], *columns: str, needs: Needs = "none", rows: Rows = "same"
    ) -> Kind:
        return Kind(name=what, table="once", apply=_fed("once", change), needs=needs, columns=columns, rows=rows)

    return [
        kind("a column from its source", lambda t: t.with_item("id", "string", "id"), "id", needs="source", rows="more"),
        kind("a column that is the same for all rows", lambda t: t.with_item("origin", "string", "'web'"), "origin", needs="own"),
        kind("a column dropped", lambda t: t.without("n"), needs="own", rows="fewer"),
        kind("a column renamed", lambda t: t.renamed("n", "digit")),
        kind("a wider type", lambda t: t.with_item("n", "bigint", "n % 10"), "n", needs="own"),
        kind("a filter over columns that it keeps", lambda t: replace(t, where=("site <> 'lab'",)), needs="own", rows="fewer"),
        kind("a filter over its source", lambda t: replace(t, where=("id IS NOT NULL",)), needs="source", rows="fewer"),
        kind("every row", lambda t: replace(t, distinct=False), needs="source", rows="more"),
        kind("another partition_by", lambda t: replace(t, partition_by=("site",))),
    ]  # fmt: skip


def _of_two_queries() -> list[Kind]:
    """Of a table of rows that two queries fill: nothing tells which of them a stored row came from."""

    def kind(
        what: str, change: Callable[[Fed], Fed], *columns: str, needs: Needs = "none", rows: Rows = "same"
    ) -> Kind:
        return Kind(name=what, table="both", apply=_fed("both", change), needs=needs, columns=columns, rows=rows)

    lang = "get_json_object(doc, '$.lang')"
    return [
        kind("a column from its sources", lambda t: t.with_item("lang", "string", lang), "lang", needs="source"),
        kind("a column that its own columns give", lambda t: t.with_item("twice", "int", "n * 2"), "twice", needs="own"),
        kind("a column dropped", lambda t: t.without("id")),
        kind("a wider type", lambda t: t.with_item("n", "bigint", "n"), "n", needs="own"),
        kind("a filter over its sources", lambda t: replace(t, where=(*t.where, "doc IS NOT NULL")), needs="source", rows="fewer"),
        kind("a query more", lambda t: replace(t, further=(*t.further, "others")), needs="source", rows="more"),
        kind("a query fewer", lambda t: replace(t, further=()), needs="source", rows="fewer"),
        kind("another partition_by", lambda t: replace(t, partition_by=())),
    ]  # fmt: skip


def _of_adapters() -> list[Kind]:
    """Of a table of ours in front of one that others write; `seen` is fed from it."""

    def kind(what: str, change: Callable[[Fed], Fed], *columns: str, needs: Needs = "none") -> Kind:
        return Kind(name=what, table="clean", apply=_fed("clean", change), needs=needs, columns=columns)

    def in_front(world: World) -> World:
        return world.with_fed(CLEAN).with_fed(replace(world.table("seen"), source="clean"))

    return [
        Kind(name="an adapter put in front", table="raw", apply=in_front, node="clean"),
        kind("a column computed from its source", lambda t: t.with_item("twice", "int", "n * 2"), "twice", needs="own"),
        kind("a column dropped that nothing reads", lambda t: t.without("spare")),
        kind("a column dropped that is read", lambda t: t.without("n")),
        kind("a column renamed", lambda t: t.renamed("spare", "extra")),
        kind("a wider type", lambda t: t.with_item("spare", "bigint", "spare"), "spare", needs="own"),
        kind("another type by a cast", lambda t: t.with_item("spare", "string", "CAST(spare AS STRING)"), "spare", needs="own"),
        kind("another value that is read", lambda t: t.with_item("n", "int", "n + 1"), "n", needs="own"),
        kind("another partition_by", lambda t: replace(t, partition_by=("spare",))),
        kind("another retention", lambda t: replace(t, retention=30)),
    ]  # fmt: skip


def _named(table: Table, name: str) -> Column:
    return next(column for column in table.columns if column.name == name)


def _with(table: Table, name: str, changed: Column) -> Table:
    return replace(table, columns=tuple(changed if column.name == name else column for column in table.columns))


def _retyped(table: Table, name: str, type: str) -> Table:
    return _with(table, name, replace(_named(table, name), type=type))


def _without(table: Table, name: str) -> Table:
    return replace(table, columns=tuple(column for column in table.columns if column.name != name))


def _called(world: World, old: str, new: str) -> World:
    """With another name for a landing table, also where it is read."""
    renamed = tuple(replace(t, name=new, was=old) if t.name == old else t for t in world.landing)
    return replace(world, landing=renamed, fed=tuple(each.reading(old, new) for each in world.fed))


def _of_landing() -> list[Kind]:
    def kind(what: str, change: Callable[[Table], Table], table: str = "events") -> Kind:
        return Kind(name=what, table=table, apply=_landing(change, table))

    def more(default: str | None = None, nullable: bool = True) -> Callable[[Table], Table]:
        column = Column(name="more", type="string", default=default, nullable=nullable)
        return lambda t: replace(t, columns=(*t.columns, column))

    return [
        kind("a column", more()),
        kind("a column with a default", more("'?'", nullable=False)),
        kind("a column without NULLs and without a default", more(nullable=False)),
        kind("a column dropped that nothing reads", lambda t: _without(t, "spare")),
        kind("a column dropped that is read", lambda t: _without(t, "n")),
        kind("a column renamed", lambda t: replace(
            _with(t, "spare", Column(name="extra", type="int")), forward_query="* EXCEPT (spare), spare AS extra")),
        kind("a wider type", lambda t: _retyped(t, "spare", "bigint")),
        kind("a narrower type", lambda t: _retyped(t, "spare", "smallint")),
        kind("another type by a forward_query", lambda t: replace(
            _retyped(t, "spare", "boolean"), forward_query="* EXCEPT (spare), spare > 0 AS spare")),
        kind("another type by a forward_query that may fail", lambda t: replace(
            _retyped(t, "spare", "date"), forward_query="* EXCEPT (spare), to_date(doc) AS spare")),
        kind("another type by a forward_query, and its backward_query", lambda t: replace(
            _retyped(t, "spare", "string"), forward_query="* EXCEPT (spare), CAST(spare AS STRING) AS spare",
            backward_query="* EXCEPT (spare), try_cast(spare AS INT) AS spare")),
        kind("a column renamed, and older lines until a day", lambda t: replace(
            _with(t, "spare", Column(name="extra", type="int")), forward_query="* EXCEPT (spare), spare AS extra",
            accepts_until="2026-12-01")),
        kind("values of another meaning", lambda t: replace(t, forward_query=MEANING)),
        kind("values of another meaning, lines told apart", lambda t: replace(
            t, forward_query=MEANING, accepts=Accepts(shape="v2"))),
        kind("values of another meaning, lines told apart by a column", lambda t: replace(
            t, columns=(*t.columns, Column(name="v", type="string")), forward_query=f"{MEANING}, NULL AS v",
            accepts=Accepts(marker="v"))),
        kind("values of another meaning, by what may fail", lambda t: replace(t, forward_query="* EXCEPT (spare), spare * 60 AS spare")),
        Kind(name="another name", table="events", apply=lambda world: _called(world, "events", "visits"), node="visits"),
        kind("another partition_by", lambda t: replace(t, partition_by=("site",))),
        kind("another cluster_by", lambda t: replace(t, cluster_by=("site",))),
        kind("another retention", lambda t: replace(t, retention_days=30)),
        kind("no NULLs any more", lambda t: _with(t, "n", replace(_named(t, "n"), nullable=False))),
        kind("a column that the table does not have", more(), "people"),
        kind("another type than the table's", lambda t: _retyped(t, "seats", "bigint"), "people"),
        kind("a column dropped that nothing reads", lambda t: _without(t, "seats"), "people"),
        kind("another partition_by", lambda t: replace(t, partition_by=("site",)), "people"),
        kind("a forward_query", lambda t: replace(t, forward_query="*"), "people"),
    ]  # fmt: skip


def _of_pipelines() -> list[Kind]:
    def dropped(table: str) -> Callable[[World], World]:
        return lambda world: replace(world, fed=tuple(fed for fed in world.fed if fed.name != table))

    def new(world: World) -> World:
        return world.with_fed(replace(world.table("hits"), name="again"))

    def wider(world: World) -> World:
        return world.with_fed(replace(world.table("hits"), where=()))

    def asked(world: World) -> World:
        return replace(world, endpoints=(("agents", "SELECT agent, sum(n) AS n FROM hits GROUP BY agent"),))

    return [
        Kind(name="a table dropped", table="busy", apply=dropped("busy")),
        Kind(name="a table dropped", table="hourly", apply=dropped("hourly")),
        Kind(name="a table dropped that is read", table="hits", apply=dropped("hits")),
        Kind(name="a new table", table="again", apply=new),
        Kind(name="a filter less", table="hits", apply=wider, needs="source", rows="more"),
        Kind(name="another query of an endpoint", table="agents", apply=asked),
    ]


KINDS: tuple[Kind, ...] = (
    *_of_rows("hits"), *_of_rows("named", "e."), *_of_two_queries(), *_of_groups(), *_of_newest(), *_of_equal_rows(),
    *_of_landing(), *_of_adapters(), *_of_pipelines(),
)  # fmt: skip
