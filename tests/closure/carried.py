"""Edits carried out in a real region beside a writer that never stops: promoted, rolled back and promoted again; DuckDB computes the expected rows.

All tables are in one pipeline, so that one rollout carries every edit. `events` is fed by the writer; `past` is a landing
table that has lost its older days.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from console.errors import Unreachable
from console.model.plan import Plan
from tests.closure.edits import Kind
from tests.closure.shapes import HITS, Fed, World, world_of
from tests.doubts import accept_doubts
from tests.life.region import DAYS, FIRST_DAY, ME, SELDOM, LiveRegion, event, multiset
from tests.life.test_lost_days import written
from tests.planning.property.judge import in_duckdb

GATE_SECONDS = 2400  # ten rebuilt tables and their checks, beside whatever else runs on the machine
BOUNDARY = "2026-11-04"  # the day after the oldest one that `past` still holds
PEOPLE = pa.schema([("site", pa.string()), ("owner", pa.string()), ("seats", pa.int32())])
PAST = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.int32()),
        ("site", pa.string()),
        ("doc", pa.string()),
    ]
)
DOC = "replace(replace(replace(payload, 'ua', 'lang'), 'bytes', 'other'), 'ms', 'agent')"
EVENTS = Fed(
    name="events",
    items=(
        ("id", "string", "id"), ("ts", "timestamp", "ts"),
        ("n", "int", "CAST(get_json_object(payload, '$.bytes') AS INT) % 100"),
        ("site", "string", "CASE WHEN get_json_object(payload, '$.status') = '404' THEN 'lab' ELSE get_json_object(payload, '$.ip') END"),
        ("doc", "string", DOC),
    ),
    source="landing", time="ts",
)  # fmt: skip
SENT = ("id: string, ts: timestamp, n: int, spare: int", "id: string, ts: timestamp, n: bigint, extra: int, more: {type: string, default: '?'}")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Carried:
    """Edits of one table, together. lost: its source is `past`;  history: the operator's word, "" for none"""

    name: str
    kinds: tuple[Kind, ...]
    lost: bool = False
    history: str = ""

    @property
    def old(self) -> Fed:
        return self._placed(world_of(self._table))

    @property
    def new(self) -> Fed:
        return replace(self._placed(changed(self.kinds)), history=self.history)

    @property
    def _table(self) -> str:
        return self.kinds[0].table

    def _placed(self, world: World) -> Fed:
        fed = world.table(self._table)
        return replace(fed, name=self.name, source="past" if self.lost else fed.source)

    def expected(self) -> str:
        """The rows of the new release, in SQL over the sources."""
        new = self.new
        if self.history == "carry":
            return _as_before(self.old, new)
        if self.lost and any(kind.needs == "source" for kind in self.kinds):
            computed = replace(new, where=(*new.where, f"ts >= '{BOUNDARY}'")).sql()
            older = replace(self.old, where=(*self.old.where, f"ts < '{BOUNDARY}'"))
            return f"{computed} UNION ALL {_as_before(older, new)}"
        return new.shown()

    def __str__(self) -> str:
        words = [
            *map(str, self.kinds),
            *(["lost days"] if self.lost else []),
            *([self.history] if self.history else []),
        ]
        return f"{self.name} ({', '.join(words)})"


def changed(kinds: Sequence[Kind]) -> World:
    """The pipeline of a table after some edits of it."""
    world = world_of(kinds[0].table)
    for kind in kinds:
        world = kind.apply(world)
    return world


def _as_before(old: Fed, new: Fed) -> str:
    """Rows by the live query, in the wanted columns: what is new is its default or NULL."""
    was = {name: expression for name, _, expression in old.items}
    defaults = dict(new.defaults)
    items = tuple((name, type, was.get(name, defaults.get(name, "NULL"))) for name, type, _ in new.items)
    return replace(old, items=items).shown()


def files_before(edits: Sequence[Carried]) -> dict[str, str]:
    return _files([EVENTS, HITS, *(edit.old for edit in edits)], SENT[0])


def files_after(edits: Sequence[Carried]) -> dict[str, str]:
    renamed = "* EXCEPT (spare), spare AS extra, NULL AS more"
    return _files([EVENTS, HITS, *(edit.new for edit in edits)], SENT[1], renamed)


def _files(tables: Sequence[Fed], sent: str, forward_query: str = "") -> dict[str, str]:
    """The pipeline's files. sent: columns of the landing table that clients write beside `landing`"""
    landing = "kind: landing\nmanaged: true\ntime: ts\n"
    made = {
        "pipeline.yaml": "description: every kind of change\n",
        "tables/landing.yaml": f"{landing}columns: {{id: string, ts: timestamp, payload: string}}\n",
        "tables/past.yaml": "kind: landing\ntime: ts\non_rewrite: ignore\ncolumns: {id: string, ts: timestamp, n: int, site: string, doc: string}\n",
        "tables/people.yaml": "kind: landing\ncolumns: {site: string, owner: string, seats: int}\n",
        "tables/sent.yaml": f"{landing}columns: {{{sent}}}\n"
        + (f'forward_query: "{forward_query}"\n' if forward_query else ""),
    }
    for fed in tables:
        made[f"tables/{fed.name}.yaml"] = json.dumps({key: value for key, value in _document(fed) if value})
        made[f"materializations/feed_{fed.name}.sql"] = f"/* into: {fed.name} */\n{fed.sql()}\n"
    return made


def _document(fed: Fed) -> Iterator[tuple[str, Any]]:
    yield "kind", "distinct" if fed.distinct else "latest" if fed.key else fed.kind if fed.kind == "aggregate" else ""
    yield "key", list(fed.key)
    yield "order_by", list(fed.order_by)
    yield "time", fed.time
    yield "partition_by", list(fed.partition_by)
    yield "cluster_by", list(fed.cluster_by)
    yield "retention", f"{fed.retention}d" if fed.retention else ""
    yield "history", fed.history
    yield "backfill", "read" if fed.backfill_read else ""
    defaults = {name: text.strip("'") for name, text in fed.defaults}
    yield (
        "columns",
        {
            column.name: {"type": column.type, "default": defaults[column.name]}
            if column.name in defaults
            else column.type
            for column in fed.columns()
        },
    )


class Sender:
    """Lines of the old shape into `sent`, until `stop`."""

    def __init__(self, region: LiveRegion) -> None:
        self._region, self._enough = region, asyncio.Event()
        self.lines: list[dict[str, Any]] = []
        self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while not self._enough.is_set():
            start = len(self.lines)
            lines = [
                {"id": f"s{n}", "ts": (FIRST_DAY + timedelta(seconds=n)).isoformat(), "n": n, "spare": n % 7}
                for n in range(start, start + 10)
            ]
            with suppress(Unreachable):
                await self._region.driver.ingest("web", "sent", f"b{start}", [json.dumps(line) for line in lines])
                self.lines += lines
            with suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), SELDOM)

    async def more(self) -> None:
        """Wait for lines that were taken after now."""
        before = len(self.lines)
        while len(self.lines) == before:
            await asyncio.sleep(0.2)

    async def stop(self) -> None:
        self._enough.set()
        await self._task


def write_past(region: LiveRegion, rng: random.Random, rows: int = 200) -> pa.Table:
    """Rows of known days, one file a day, and the joined table."""
    made: dict[str, list[dict[str, Any]]] = {}
    for number in range(rows):
        row = event(number, rng)
        at = FIRST_DAY + timedelta(seconds=rng.randrange(DAYS * 86400))
        doc = json.dumps(
            {
                "agent": rng.choice(["curl", None, "x"]),
                "lang": rng.choice(["de", None]),
                "other": rng.choice(["a", "b"]),
            }
        )
        row = {
            "id": f"p{number}",
            "ts": at,
            "n": rng.choice([None, -1, 5, 40, 60, 99]),
            "site": rng.choice(["lab", "eu"]),
            "doc": doc,
        }
        made.setdefault(at.date().isoformat(), []).append(row)
    for value in made.values():
        write_deltalake(str(region.warehouse / "past"), pa.Table.from_pylist(value, PAST), mode="append")
    people = [{"site": f"192.0.2.{n}", "owner": f"o{n % 3}", "seats": n} for n in range(0, 40, 2)]
    write_deltalake(str(region.warehouse / "people"), pa.Table.from_pylist(people, PEOPLE), mode="append")
    return pa.Table.from_pylist([row for value in made.values() for row in value], PAST)


def lose_days(region: LiveRegion) -> None:
    """`past` forgets its two oldest days."""
    gone = "ts < arrow_cast('2026-11-03T00:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    DeltaTable(str(region.warehouse / "past")).delete(gone)


async def to_the_gate_and_on(region: LiveRegion) -> Plan:
    """Plan, carry to the gate, promote. A check that found a difference ends it; one that could not decide is DuckDB's to make up for."""
    plan = await region.plan("web")
    assert not plan.refusals, plan.refusals
    await region.driver.accept(plan, ME)
    status = await region.until("web", "awaiting-confirmation", seconds=GATE_SECONDS)
    assert [check for check in status.checks if check.ok is False] == []
    await accept_doubts(region.driver, "web", status, ME)
    await region.driver.promote("web", status.rollout, status.was, ME)
    return plan


async def carry(
    region: LiveRegion, edits: Sequence[Carried], place: Path, seed: int = 1
) -> tuple[list[str], Counter[str]]:
    """What differs in the end, and the routes that were taken."""
    past = write_past(region, random.Random(seed))
    region.install("web", written(place / "before", files_before(edits)))
    await to_the_gate_and_on(region)
    lose_days(region)
    region.write("web", SELDOM)
    sender = Sender(region)
    region.install("web", written(place / "after", files_after(edits)))
    plan = await to_the_gate_and_on(region)
    await region.roll_back("web")
    await sender.more()
    await region.roll_back("web")  # back from the way back: forward again
    await sender.stop()
    await region.quiet(["web"])
    differences = [text async for text in _differences(region, edits, past)]
    differences += [text async for text in _of_sent(region, sender.lines)]
    routes = {node.name: node.action for node in plan.nodes}
    return differences, Counter(routes[edit.name] for edit in edits)


async def found_by_verify(region: LiveRegion) -> list[str]:
    return [str(item) for item in await region.driver.verify("web", "web-2") if item.ok is False]


async def _of_sent(region: LiveRegion, lines: Sequence[Mapping[str, Any]]) -> AsyncIterator[str]:
    counted = multiset(await region.table("web", "id, n, extra, more", "sent"))
    truth = multiset([(line["id"], line["n"], line["spare"], "?") for line in lines])
    if counted != truth:
        yield f"sent: lost {len(truth - counted)}, more {len(counted - truth)}"


async def _differences(region: LiveRegion, edits: Sequence[Carried], past: pa.Table) -> AsyncIterator[str]:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    db.register("landing", DeltaTable(str(region.warehouse / "landing")).to_pyarrow_table())
    db.register("people", DeltaTable(str(region.warehouse / "people")).to_pyarrow_table())
    db.register("past", past)
    for fed in (EVENTS, HITS):
        db.execute(f"CREATE TABLE {fed.name} AS {in_duckdb(fed.sql())}")
    for edit in edits:
        names = ", ".join(name for name, _, _ in edit.new.items)
        truth = multiset(db.execute(f"SELECT {names} FROM ({in_duckdb(edit.expected())})").fetchall())
        rows = multiset(await region.table("web", names, edit.name))
        if rows != truth:
            lacks, more = truth - rows, rows - truth
            yield f"{edit}: lacks {lacks.total()} {list(lacks)[:2]}, has {more.total()} more {list(more)[:2]}"
