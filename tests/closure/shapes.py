"""Pipelines as small values: the effect of an edit on rows and values is known before the planner sees it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from console.model.pipeline import Endpoint, Materialization, Pipeline
from console.model.schema import Column, Kind, Table

Items = tuple[tuple[str, str, str], ...]  # name, type, expression


@dataclass(frozen=True, kw_only=True)
class Fed:
    """A table that is fed by one query.

    grouped   items that are keys of an aggregate; () for a table of rows
    key       of kind `latest`: rows that are equal in these are one, the one with the greatest `order_by`
    distinct  equal rows are one
    adapter   a table of ours in front of its source, which others write
    further   sources of more queries like its first
    """

    name: str
    kind: Kind = "append"
    items: Items
    source: str
    join: str = ""
    where: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()
    time: str = ""
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    retention: int | None = None
    history: str = ""
    forward_query: str = ""
    defaults: tuple[tuple[str, str], ...] = ()
    strict: tuple[str, ...] = ()  # columns that may not be NULL
    backfill_read: bool = False
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    distinct: bool = False
    adapter: bool = False
    further: tuple[str, ...] = ()

    def sources(self) -> tuple[str, ...]:
        return (self.source.split()[0], *self.further)

    def columns(self) -> tuple[Column, ...]:
        defaults = dict(self.defaults)
        return tuple(
            Column(name=name, type=type, default=defaults.get(name), nullable=name not in self.strict)
            for name, type, _ in self.items
        )

    def sql(self, source: str = "") -> str:
        """source: of which of its queries, the first if it is not named"""
        listed = ", ".join(f"{expression} AS {name}" for name, _, expression in self.items)
        text = f"SELECT {listed} FROM {source or self.source} {self.join}".rstrip()
        text += f" WHERE {' AND '.join(self.where)}" if self.where else ""
        if self.kind != "aggregate":
            return text
        keys = [expression for name, _, expression in self.items if name in self.grouped]
        return f"{text} GROUP BY {', '.join(keys)}"

    def shown(self) -> str:
        """The rows that readers see: of each key the newest, equal ones once."""
        if self.distinct:
            return f"SELECT DISTINCT * FROM ({self.sql()})"
        if not self.key:
            return self.sql()
        newest = ", ".join(f"{name} DESC NULLS LAST" for name in self.order_by)
        keys = ", ".join(self.key)
        return f"SELECT * FROM ({self.sql()}) QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {newest}) = 1"

    def with_item(self, name: str, type: str, expression: str) -> "Fed":
        """One item more at the end, or another type and expression for one that is there."""
        if any(name == own for own, _, _ in self.items):
            return replace(self, items=tuple((name, type, expression) if own[0] == name else own for own in self.items))
        return replace(self, items=(*self.items, (name, type, expression)))

    def without(self, name: str) -> "Fed":
        return replace(self, items=tuple(own for own in self.items if own[0] != name))

    def beside(self, name: str, live: "Fed") -> "Fed":
        """With an item as it is live, and the one that is wanted under another name."""
        was = next((item for item in live.items if item[0] == name), None)
        if was is None:
            return self
        _, type, sql = next(item for item in self.items if item[0] == name)
        fresh = f"new_{name}"
        defaults = tuple((fresh if own == name else own, value) for own, value in self.defaults)
        return replace(self.with_item(*was).with_item(fresh, type, sql), defaults=defaults)

    def not_reading(self, column: str) -> "Fed":
        """Without the items and conditions that name a column of its source."""
        named = re.compile(rf"\b{column}\b", re.I)
        items = tuple(item for item in self.items if not named.search(item[2]))
        return replace(self, items=items, where=tuple(one for one in self.where if not named.search(one)))

    def reading(self, old: str, new: str) -> "Fed":
        """With another name for one of its sources, whose alias stays."""
        words = [new if word == old else word for word in self.source.split()]
        return replace(self, source=" ".join(words), further=tuple(new if s == old else s for s in self.further))

    def renamed(self, name: str, to: str) -> "Fed":
        """With another name for an item, wherever the table is declared by it."""

        def called(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(to if own == name else own for own in names)

        items = tuple((to if own == name else own, type, sql) for own, type, sql in self.items)
        return replace(
            self, items=items, key=called(self.key), order_by=called(self.order_by),
            partition_by=called(self.partition_by), cluster_by=called(self.cluster_by),
        )  # fmt: skip

    def is_whole(self) -> bool:
        """Whether it has every column by which it is declared."""
        by = {
            *self.key,
            *self.order_by,
            *self.partition_by,
            *self.cluster_by,
            *self.grouped,
            *self.strict,
            *filter(None, [self.time]),
        }
        return by | {name for name, _ in self.defaults} <= {name for name, _, _ in self.items}


@dataclass(frozen=True, kw_only=True)
class World:
    """landing: tables from outside;  fed: the tables below them, sources first;  endpoints: name → query"""

    landing: tuple[Table, ...]
    fed: tuple[Fed, ...]
    endpoints: tuple[tuple[str, str], ...] = ()

    def table(self, name: str) -> Fed:
        return next(fed for fed in self.fed if fed.name == name)

    def with_fed(self, changed: Fed) -> "World":
        if all(fed.name != changed.name for fed in self.fed):
            return replace(self, fed=(*self.fed, changed))
        return replace(self, fed=tuple(changed if fed.name == changed.name else fed for fed in self.fed))

    def with_landing(self, changed: Table) -> "World":
        return replace(self, landing=tuple(changed if table.name == changed.name else table for table in self.landing))

    def land(self, name: str) -> Table:
        return next(table for table in self.landing if table.name == name)

    def more(self, *fed: Fed, landing: tuple[Table, ...] = ()) -> "World":
        return replace(self, landing=(*self.landing, *landing), fed=(*self.fed, *fed))

    def is_whole(self) -> bool:
        """Whether every table is, and none has two columns of one name."""
        named = [[column.name for column in table.columns] for table in self.landing]
        named += [[name for name, _, _ in fed.items] for fed in self.fed]
        return all(fed.is_whole() for fed in self.fed) and all(len({*names}) == len(names) for names in named)

    def pipeline(self) -> Pipeline:
        return Pipeline(
            name="web",
            tables=tuple(sorted((*self.landing, *map(_declared, self.fed)), key=lambda table: table.name)),
            materializations=tuple(
                feed for fed in sorted(self.fed, key=lambda fed: fed.name) for feed in _materializations(fed)
            ),
            endpoints=tuple(Endpoint(name=name, sql=sql) for name, sql in self.endpoints),
        )


def _materializations(fed: Fed) -> Iterator[Materialization]:
    yield Materialization(name=fed.name if fed.adapter else f"feed_{fed.name}", into=fed.name, sql=fed.sql())
    for source in fed.further:
        yield Materialization(name=f"feed_{fed.name}_{source}", into=fed.name, sql=fed.sql(source))


def fed_by(materialization: str) -> str:
    """The table that a query fills, by the names that `World.pipeline` gives to queries."""
    return materialization.removeprefix("feed_").split("_")[0]


def _declared(fed: Fed) -> Table:
    return Table(
        name=fed.name, kind=fed.kind, columns=fed.columns(), time=fed.time, partition_by=fed.partition_by,
        cluster_by=fed.cluster_by, retention_days=fed.retention, history=fed.history, forward_query=fed.forward_query,
        backfill="read" if fed.backfill_read else "auto", order_by=fed.order_by,
        key=tuple(name for name, _, _ in fed.items) if fed.distinct else fed.key, source=fed.source if fed.adapter else "",
    )  # fmt: skip


def columns(pairs: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type) for name, type in pairs)


EVENTS = Table(
    name="events",
    kind="landing",
    columns=columns(
        [("id", "string"), ("ts", "timestamp"), ("n", "int"), ("site", "string"), ("doc", "string"), ("spare", "int")]
    ),
    time="ts",
    managed=True,
)
PEOPLE = Table(
    name="people", kind="landing", columns=columns([("site", "string"), ("owner", "string"), ("seats", "int")])
)
HITS = Fed(
    name="hits",
    items=(
        ("id", "string", "id"), ("ts", "timestamp", "ts"), ("day", "date", "to_date(ts)"), ("n", "int", "n"),
        ("site", "string", "site"), ("agent", "string", "get_json_object(doc, '$.agent')"),
    ),
    source="events", where=("n >= 0",), time="ts", partition_by=("day",),
)  # fmt: skip
NAMED = Fed(
    name="named",
    items=(
        ("id", "string", "e.id"), ("ts", "timestamp", "e.ts"), ("day", "date", "to_date(e.ts)"), ("n", "int", "e.n"),
        ("owner", "string", "p.owner"),
    ),
    source="events e", join="LEFT JOIN people p ON p.site = e.site", time="ts", partition_by=("day",),
)  # fmt: skip
BUSY = Fed(
    name="busy",
    items=(("id", "string", "id"), ("ts", "timestamp", "ts"), ("day", "date", "day"), ("n", "int", "n")),
    source="hits", where=("n > 2",), time="ts", partition_by=("day",),
)  # fmt: skip
HOURLY = Fed(
    name="hourly", kind="aggregate",
    items=(
        ("hour", "timestamp", "date_trunc('HOUR', ts)"), ("day", "date", "day"), ("site", "string", "site"),
        ("hits", "int", "count(*)"), ("total", "bigint", "sum(n)"), ("top", "int", "max(n)"),
        ("mean", "double", "avg(n)"),
    ),
    source="hits", grouped=("hour", "day", "site"), time="hour", partition_by=("day",),
)  # fmt: skip
WORLD = World(
    landing=(EVENTS, PEOPLE),
    fed=(HITS, NAMED, BUSY, HOURLY),
    endpoints=(("agents", "SELECT agent, count(*) AS n FROM hits GROUP BY agent"),),
)
# Kinds of tables that not every pipeline has: of each the tables that it takes.
LAST = Fed(
    name="last",
    items=(
        ("site", "string", "site"), ("ts", "timestamp", "ts"), ("id", "string", "id"), ("n", "int", "n"),
        ("agent", "string", "get_json_object(doc, '$.agent')"),
    ),
    source="events", where=("n >= 0",), time="ts", key=("site",), order_by=("ts", "id"),
)  # fmt: skip
ONCE = Fed(
    name="once",
    items=(("day", "date", "to_date(ts)"), ("site", "string", "site"), ("n", "int", "n % 10")),
    source="events", time="day", distinct=True,
)  # fmt: skip
RAW = Table(
    name="raw",
    kind="landing",
    columns=columns([("id", "string"), ("ts", "timestamp"), ("n", "int"), ("spare", "int")]),
    time="ts",
)
SEEN = Fed(
    name="seen",
    items=(("id", "string", "id"), ("ts", "timestamp", "ts"), ("n", "int", "n")),
    source="raw", where=("n >= 0",), time="ts",
)  # fmt: skip
CLEAN = Fed(
    name="clean",
    items=tuple((column.name, column.type, column.name) for column in RAW.columns),
    source="raw", time="ts", adapter=True,
)  # fmt: skip
LATER = replace(EVENTS, name="later", managed=False)
OTHERS = replace(LATER, name="others")
BOTH = replace(HITS, name="both", further=("later",))
FURTHER: dict[str, World] = {
    "both": WORLD.more(BOTH, landing=(LATER, OTHERS)),
    "last": WORLD.more(LAST),
    "once": WORLD.more(ONCE),
    "raw": WORLD.more(SEEN, landing=(RAW,)),
    "clean": WORLD.more(CLEAN, replace(SEEN, source="clean"), landing=(RAW,)),
}


def world_of(table: str) -> World:
    """The smallest pipeline that has a table."""
    return FURTHER.get(table, WORLD)
