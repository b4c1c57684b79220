"""`history: from now` on real files without Spark: the plan's queries run in DuckDB, its files are linked, later rows are appended.

What is expected is computed from the edits: older rows by the old query, with NULL, defaults and what is proven for new columns; later
rows by the new one; of an aggregate each measure over the rows that it has counted; merged as the kind of the table says.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlglot
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from sqlglot import exp

from console.agent.execution.linked_history import link_history
from console.agent.feeds import app_ids, commit
from console.agent.feeds.backfill import History
from console.model.live import Release, TableState
from console.model.slices import Slice
from console.model.step import Backfill
from console.planning import PlannerCache
from tests.closure.edits import Kind
from tests.closure.facts import Facts, deployed
from tests.closure.follow import Attempt, answer
from tests.closure.shapes import HITS, Fed, world_of
from tests.life.region import multiset
from tests.planning.property.judge import in_duckdb

WORD = "from now"
FEED = "history/t/forward@1"
ROWS = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """refused: by what;  without_effect: no file is taken over;  difference: "" where all rows are as expected"""

    refused: str = ""
    without_effect: bool = False
    difference: str = ""


def carried_from_now(kinds: Sequence[Kind], word: str, place: Path, rng: random.Random, cache: PlannerCache) -> Outcome:
    """Edits of one table, carried out from now on. word: what its older rows show, "" for the default"""
    name, world = kinds[0].table, world_of(kinds[0].table)
    live = deployed(world, Facts(), cache)
    attempt = Attempt(old=world, edits=tuple(kinds), history={name: f"{WORD}{word}"})
    plan, refused = answer(attempt, live, cache)
    if plan is None or refused:
        return Outcome(refused="; ".join(map(str, refused)))
    if all(node.name != name or not node.history for node in plan.nodes):
        return Outcome(without_effect=True)
    (step,) = [step for step in plan.steps if isinstance(step, Backfill) and step.target == name]
    assert step.linked
    assert live.release is not None
    db = _database()
    older, later = (_drawn(rng, prefix) for prefix in "ab")
    _arrive(db, older)
    versions = []
    for number, release in enumerate((live.release, plan.release)):
        state = release.table(name)
        assert state is not None
        path = place / f"{name}-{number}"
        write_deltalake(str(path), _stored(db, release, state).slice(0, 0), partition_by=[*state.version.partition_by])
        versions.append((release, state, path))
    (release, state, source), (wanted, after, target) = versions
    write_deltalake(str(source), _stored(db, release, state), mode="append")
    _link(step, state, source, target)
    _arrive(db, later)
    write_deltalake(str(target), _stored(db, wanted, after), mode="append")
    if after.newest is None:  # others are compacted by Spark, which merges them
        DeltaTable(str(target)).optimize.compact()
    db.register("stored", DeltaTable(str(target)).to_pyarrow_table())
    new = attempt.world.table(name)
    names = ", ".join(f'"{column}"' for column, _, _ in new.items)
    rows = multiset(db.execute(f"SELECT {names} FROM ({_translated(after.read)})").fetchall())
    truth = multiset(db.execute(f"SELECT {names} FROM ({_expected(world.table(name), new, kinds, word)})").fetchall())
    lacks, more = truth - rows, rows - truth
    return Outcome(difference=f"lacks {[*lacks][:3]}, has {[*more][:3]}" if lacks or more else "")


def _database() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    columns = "id VARCHAR, ts TIMESTAMPTZ, n INT, site VARCHAR, doc VARCHAR, spare INT"
    for table in ("older_events", "events"):
        db.execute(f"CREATE TABLE {table} ({columns})")
    db.execute("CREATE TABLE people (site VARCHAR, owner VARCHAR, seats INT)")
    db.execute("INSERT INTO people VALUES ('eu', 'o', 3)")
    db.execute(
        "CREATE VIEW every_events AS SELECT *, false AS later FROM older_events UNION ALL SELECT *, true FROM events"
    )
    db.execute(f"CREATE VIEW hits AS {in_duckdb(HITS.sql())}")
    db.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
    return db


def _drawn(rng: random.Random, prefix: str) -> list[tuple[object, ...]]:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    docs = ['{"agent":"x","lang":"de","other":"o"}', '{"agent":"y"}', '{"other":"p"}', None]
    return [
        (
            f"{prefix}{number}", start + timedelta(minutes=rng.randrange(3 * 1440)), rng.choice([None, -1, 3, 7, 60]),
            rng.choice(["eu", "lab", None]), rng.choice(docs), rng.choice([None, 1]),
        )
        for number in range(ROWS)
    ]  # fmt: skip


def _arrive(db: duckdb.DuckDBPyConnection, rows: list[tuple[object, ...]]) -> None:
    """New rows in the source; those before them count as older."""
    db.execute("INSERT INTO older_events SELECT * FROM events")
    db.execute("DELETE FROM events")
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)


def _stored(db: duckdb.DuckDBPyConnection, release: Release, state: TableState) -> pa.Table:
    """What the table's feed writes for the rows of its source, in stored columns."""
    (feed,) = release.feeds_into(state.table.name)
    sql = feed.sql
    if state.newest is not None:
        sql = f"SELECT *, {', '.join(state.newest.added_values)} FROM ({sql})"
    stored = ", ".join(f"CAST(`{column.name}` AS {column.type}) AS `{column.name}`" for column in state.version.columns)
    return db.execute(_translated(f"SELECT {stored} FROM ({sql})")).to_arrow_table()


def _translated(sql: str) -> str:
    """Spark's hash has another name and other values, and only decides between rows of one order."""
    tree = sqlglot.parse_one(sql, read="spark")
    for call in _calls(tree, "isnull"):
        call.replace(exp.Is(this=call.expressions[0].copy(), expression=exp.null()))
    for call in _calls(tree, "xxhash64"):
        hashed = exp.Anonymous(this="hash", expressions=[each.copy() for each in call.expressions])
        call.replace(exp.cast(exp.Mod(this=hashed, expression=exp.Literal.number(1_000_003)), "bigint"))
    return in_duckdb(tree.sql("spark"))


def _calls(tree: exp.Expr, name: str) -> list[exp.Anonymous]:
    return [call for call in tree.find_all(exp.Anonymous) if call.name.lower() == name]


def _link(step: Backfill, state: TableState, source: Path, target: Path) -> None:
    taken = CommitProperties(app_transactions=[Transaction(FEED, 1 << app_ids.EPOCH_BITS)])
    write_deltalake(str(target), DeltaTable(str(target)).to_pyarrow_table(), mode="append", commit_properties=taken)
    writer = commit.FeedWriter(app_id=FEED, target=str(target), epoch=1, position=0)
    whole = Slice(index=1, label="all", first="", end="", rows=0, bytes=0)
    link_history(
        History(
            step=step, source=state, source_path=str(source), target=state, target_path=str(target), fence=1,
            slices=(whole,), writer=writer,
        )
    )  # fmt: skip


def _expected(old: Fed, new: Fed, kinds: Sequence[Kind], word: str) -> str:
    """The rows that readers see, as SQL."""
    if new.kind == "aggregate":
        return _of_groups(old, new, counted=all(kind.needs != "source" or kind.rows == "same" for kind in kinds))
    was = {name: sql for name, _, sql in old.items}
    same = {sql for _, _, sql in old.items}
    fresh = {column for kind in kinds for column in kind.columns}
    narrower = {column for kind in kinds for column in kind.columns if kind.name == "a narrower type"}
    same_rows = all(kind.rows == "same" for kind in kinds)  # else nothing is proven of the table's own columns
    own = {column for kind in kinds for column in kind.columns if kind.needs in ("own", "read") and same_rows}
    defaults = dict(new.defaults)
    items = []
    for name, type, sql in new.items:
        chosen = name in fresh and (was.get(name) != sql or name in narrower)
        if sql.startswith("'"):  # the same for all rows, supplied by the release whatever is chosen
            value = sql
        elif chosen and word in (" as null", " as default"):
            value = "NULL" if word == " as null" else defaults[name]
        elif name in was:
            value = sql if word == " as computed" and chosen else was[name]
        elif sql in same or name in own:
            value = sql
        else:
            value = defaults.get(name, "NULL")
        items.append((name, type, f"CAST({value} AS {type})"))
    source = {"events": "older_events", "events e": "older_events e"}[old.source]
    before = replace(old, items=tuple(items), source=source).sql()
    typed = tuple((name, type, f"CAST({sql} AS {type})") for name, type, sql in new.items)
    after = replace(new, items=typed).sql()
    shown = Fed(name="t", items=tuple((name, type, name) for name, type, _ in new.items), source="u", key=new.key,
                order_by=new.order_by, distinct=new.distinct).shown()  # fmt: skip
    return in_duckdb(f"WITH u AS ({before} UNION ALL {after}) {shown}")


def _of_groups(old: Fed, new: Fed, *, counted: bool) -> str:
    """Each measure over the rows that it has counted: older ones for what the live table had, whatever its name.

    counted  whether the live measures have counted the rows that are wanted, so that others can be computed from them
    """
    same = {sql for _, _, sql in old.items}
    rows = []
    for later, where in ((False, old.where), (True, new.where)):
        condition = " AND ".join(f"({one})" for one in where) or "true"
        rows.append(f"SELECT *, {later} AS later FROM every_hits WHERE later = {later} AND {condition}")
    chosen = []
    for name, type, sql in new.items:
        kept = sql in same and (counted or any(name == own for own, _, _ in old.items))
        plain = name in new.grouped or kept or (counted and _over_states(sql, same))
        chosen.append(f"CAST({sql if plain else _of_later_rows(sql)} AS {type}) AS {name}")
    hits = HITS.sql().replace("FROM events", "FROM every_events").replace("SELECT ", "SELECT later, ")
    keys = ", ".join(sql for name, _, sql in new.items if name in new.grouped)
    text = f"WITH every_hits AS ({hits}), u AS ({' UNION ALL '.join(rows)}) SELECT {', '.join(chosen)} FROM u GROUP BY {keys}"
    return in_duckdb(text)


def _of_later_rows(sql: str) -> str:
    """The same over later rows alone, call by call."""

    def put(node: exp.Expr) -> exp.Expr:
        later = exp.Where(this=exp.column("later"))
        return exp.Filter(this=node.copy(), expression=later) if isinstance(node, exp.AggFunc) else node

    return sqlglot.parse_one(sql, read="spark").transform(put).sql("spark")


def _over_states(sql: str, same: set[str]) -> bool:
    """Whether a measure is computed from what the live ones have counted."""
    calls = [call.sql("spark").lower() for call in sqlglot.parse_one(sql, read="spark").find_all(exp.AggFunc)]
    counted = {call for one in same for call in (one.lower(), *(("sum(n)", "count(n)") if one == "avg(n)" else ()))}
    return all(call in counted for call in calls)
