"""Merging an aggregate's states on Spark: every key keeps its value, no feed sees a new row, and receipts of before hold.

The table is filled by its own feed, commit by commit; what is read is judged by Python over the rows that landed.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.errors import MergeDiffers
from console.agent.feeds import commit, ranges
from console.agent.feeds.checksum import row_sums_per_day
from console.agent.feeds.live_feed import LiveFeed, logical_rows
from console.agent.maintenance import merge as merging_module
from console.agent.maintenance.compaction import crowded
from console.agent.maintenance.merge import Merge, Merged, merge
from console.agent.maintenance.merged_values import key_differences, united
from console.agent.maintenance.replaced_files import partition_files
from console.agent.receipts.audit import Audit
from console.agent.receipts.step_receipts import sum_definition
from console.agent.spark_session import SparkHandle
from console.agent.store import log, open_tables
from console.errors import Conflict
from console.model.live import TableState, Version
from console.model.receipt import Finding, Measured, Place, Receipt
from console.model.schema import Table, quoted
from tests.faults.rules.tables import state
from tests.planning.test_aggregates import split
from tests.planning.world import columns

pytestmark = [pytest.mark.faults, pytest.mark.spark]

QUERY = """SELECT k, day, count(*) AS hits, sum(d) AS paid, sum(f) AS near, avg(i) AS mean, min(s) AS low, max(l) AS high,
  approx_count_distinct(s) AS about, approx_percentile(f, 0.5) AS middle, variance(f) AS var, corr(i, f) AS pair,
  max_by(s, l) AS latest, collect_set(s) AS seen, bool_or(i > 2) AS one, bit_xor(l) AS bxor
FROM t GROUP BY k, day"""
TYPES = {
    "k": "string", "day": "date", "hits": "bigint", "paid": "decimal(38,2)", "near": "double", "mean": "double",
    "low": "string", "high": "bigint", "about": "bigint", "middle": "double", "var": "double", "pair": "double",
    "latest": "string", "seen": "array<string>", "one": "boolean", "bxor": "bigint",
}  # fmt: skip
LANDED = columns(k="string", day="date", i="int", l="bigint", d="decimal(10,2)", f="double", s="string")
EXACT = ("k", "day", "hits", "paid", "mean", "low", "high", "about", "latest", "seen", "one", "bxor")
KEYS = ("a", "b c/%é", "", None)
COMMITS = 5


def aggregate() -> TableState:
    code = split(QUERY, **TYPES)
    assert code.split is not None
    assert code.split.merging is not None
    table = Table(name="agg", kind="aggregate", columns=columns(**TYPES), partition_by=("day",), time="day")
    version = Version(content="c", path="agg/a-1", columns=code.stored, partition_by=("day",))
    return TableState(table=table, version=version, read=code.read, rows="", values={}, merging=code.split.merging)


AGGREGATE = aggregate()


SCHEMA = pa.schema(
    [
        ("k", pa.string()), ("day", pa.date32()), ("i", pa.int32()), ("l", pa.int64()), ("d", pa.decimal128(10, 2)),
        ("f", pa.float64()), ("s", pa.string()),
    ]
)  # fmt: skip


def landed(number: int, rows: int = 30) -> Iterator[tuple[Any, ...]]:
    """The rows of one commit: NULL keys and values, doubles of two sizes, days and none."""
    rng = random.Random(number)
    for n in range(rows):
        yield (
            rng.choice(KEYS), date(2026, 11, rng.choice([1, 2])) if n else None, rng.choice([None, *range(-3, 5)]),
            rng.choice([None, rng.randrange(10**6)]), rng.choice([None, Decimal(rng.randrange(-9900, 9900)) / 100]),
            rng.choice([None, rng.uniform(-9, 9), 1e9 + rng.random()]),
            rng.choice([None, "", *(f"s{rng.randrange(500)}" for _ in range(5))]),
        )  # fmt: skip


def land(place: Path, *numbers: int) -> None:
    for number in numbers:
        columns_of = zip(*landed(number), strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns_of, SCHEMA, strict=True)]
        write_deltalake(str(place / "t"), pa.table(arrays, SCHEMA), mode="append")


def hits_of(commits: int) -> Counter[tuple[Any, str]]:
    """What a reader has to see once so many commits have landed, by Python."""
    return Counter((k, str(day)) for number in range(commits) for k, day, *_ in landed(number))


def feeding(place: Path) -> LiveFeed:
    landing = state("t", LANDED, kind="landing", partition_by=())
    return LiveFeed(
        spec=split(QUERY, **TYPES).feed, source=landing, target=AGGREGATE, joins=(), source_path=str(place / "t"),
        target_path=str(place / "agg/a-1"), start=0,
    )  # fmt: skip


def follow(session: Any, feed: LiveFeed) -> None:
    """One commit for each commit of the source."""
    feed.open(session)
    for end in range(feed.seen + 1, log.latest_version(feed.source_path) + 1):
        feed.step(session, end)


@pytest.fixture(scope="module")
def filled(spark: SparkHandle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An aggregate of five commits, in partitions by day, with rows without one."""
    place, session = tmp_path_factory.mktemp("merged"), spark.session()
    DeltaTable.create(str(place / "t"), SCHEMA)
    land(place, *range(COMMITS))
    commit.create(session, AGGREGATE, str(place / "agg/a-1"), 72)
    follow(session, feeding(place))
    return place


@dataclass(frozen=True, slots=True)
class Filled:
    place: Path
    session: Any

    @property
    def path(self) -> str:
        return str(self.place / "agg/a-1")

    def stored(self, version: int | None = None) -> Any:
        reader = self.session.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path)

    def shown(self, version: int | None = None) -> dict[tuple[Any, Any], dict[str, Any]]:
        """Key → what a reader sees."""
        rows = logical_rows(self.session, AGGREGATE, self.stored(version)).collect()
        return {(row["k"], row["day"]): row.asDict() for row in rows}

    def times(self, day: str) -> list[int]:
        """When the files of a day were written, by the log."""
        values = (("day", None if day == "NULL" else day),)
        return [file.modified for file in partition_files(self.path, log.latest_version(self.path), values)]

    def merge(self, day: str = "2026-11-01", **more: Any) -> Merged | None:
        return merge(self.session, self.wanted(day, **more))

    def wanted(self, day: str = "2026-11-01", **more: Any) -> Merge:
        (crowd,) = (each for each in crowded(self.path, many=2) if each.label == f"day={day}")
        assert AGGREGATE.merging is not None
        words: dict[str, Any] = {"passed": log.latest_version(self.path), **more}
        return Merge(table=self.path, crowd=crowd, state=AGGREGATE, merging=AGGREGATE.merging, tasks=1, **words)


@pytest.fixture
def table(filled: Path, tmp_path: Path, session: Any) -> Filled:
    shutil.copytree(filled, tmp_path / "region")
    return Filled(tmp_path / "region", session)


def same(one: Mapping[Any, dict[str, Any]], other: Mapping[Any, dict[str, Any]]) -> bool:
    assert one.keys() == other.keys()
    for key, row in one.items():
        assert {name: row[name] for name in EXACT} == {name: other[key][name] for name in EXACT}, key
        for name in ("near", "var", "pair"):
            wanted = other[key][name]
            near = wanted if wanted is None else pytest.approx(wanted, rel=1e-6, nan_ok=True)
            assert row[name] == near, (key, name)
    return True


def hits(rows: Mapping[Any, dict[str, Any]]) -> Counter[tuple[Any, str]]:
    return Counter({(k, str(day)): row["hits"] for (k, day), row in rows.items()})


def streamed(table: Filled, first: int) -> int:
    """Rows that another program's stream, by Delta's own source, finds from a version on."""
    source = table.session.readStream.format("delta").option("startingVersion", first).load(table.path)
    stream = source.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    assert stream.awaitTermination(120)
    return int(table.session.table("streamed").count())


def test_one_state_of_each_key_is_left_and_every_value_and_no_feed_sees_a_new_row(table: Filled) -> None:
    before, was = table.shown(), log.latest_version(table.path)
    assert hits(before) == hits_of(COMMITS)
    for day in ("2026-11-01", "NULL"):
        oldest = min(table.times(day))
        merged = table.merge(day)
        assert merged is not None
        assert (merged.files, merged.new_files) == (COMMITS, 1)
        assert merged.rows > merged.new_rows
        made = log.commit(table.path, merged.version)
        assert (made.kind, made.added, made.removed, made.note["kind"]) == ("quiet", (), 0, log.MERGE)
        assert table.times(day) == [oldest], "as old as the oldest of its rows: what was erased since may be among them"
    assert same(before, table.shown())
    merged_days = [key for key in before if str(key[1]) != "2026-11-02"]
    assert table.stored().where("day IS NULL OR day = '2026-11-01'").count() == len(merged_days)
    part = ranges.next_range(table.path, was, log.latest_version(table.path), 10**9)
    assert part is not None
    assert (part.rows, part.files) == (0, ())
    assert streamed(table, was + 1) == 0
    assert same(before, table.shown(was)), "the version of before is readable as it was"


# in every run, rows arrive while states are merged
@pytest.mark.soak
def test_the_feed_goes_on_from_its_position_and_merges_again(table: Filled) -> None:
    table.merge()
    land(table.place, COMMITS, COMMITS + 1)
    follow(table.session, feeding(table.place))
    assert hits(table.shown()) == hits_of(COMMITS + 2)
    merged = table.merge()
    assert merged is not None
    assert merged.files == 1 + 2
    assert hits(table.shown()) == hits_of(COMMITS + 2)
    assert {crowd.label for crowd in crowded(table.path, many=2)} == {"day=2026-11-02", "day=NULL"}


def test_rows_that_arrive_while_states_are_merged_stay_as_they_are(
    table: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, feed = merging_module.spark_files.write, feeding(table.place)

    def late(*words: Any) -> Any:
        written = real(*words)
        land(table.place, COMMITS)
        follow(table.session, feed)
        return written

    monkeypatch.setattr(merging_module.spark_files, "write", late)
    merged = table.merge()
    assert merged is not None
    assert merged.files == COMMITS
    assert hits(table.shown()) == hits_of(COMMITS + 1)


# -- feeds below


def test_files_with_rows_that_a_feed_below_has_not_passed_are_left_alone(table: Filled) -> None:
    """A feed of another pipeline, to which the states are rows: each of them reaches it once."""
    before, end = table.shown(), log.latest_version(table.path)
    passed = next(
        v for v in range(end + 1) if sum(log.commit(table.path, n).kind == "append" for n in range(v + 1)) == 3
    )
    later = {file.path for v in range(passed + 1, end + 1) for file in log.commit(table.path, v).added}
    merged = table.merge(passed=passed)
    assert merged is not None
    assert merged.files == 3
    assert later <= {str(Path(uri.removeprefix("file://"))) for uri in DeltaTable(table.path).file_uris()}
    assert same(before, table.shown())
    # what was merged, and what a compaction has moved since, holds rows that came later
    assert table.merge(passed=passed) is None
    assert table.merge(passed=-1) is None


# -- the values of all keys


def spoiled(expression: str) -> Callable[[Any], Any]:
    return lambda rows: rows.selectExpr(
        *(f"{expression} AS {c}" if expression.find(f"`{c}`") >= 0 else quoted(c) for c in rows.columns)
    )


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a key": (lambda rows: rows.where("k = 'a'"), "keys are gone"),
    "a new key": (lambda rows: rows.union(rows.where("k = 'a'").selectExpr("'z' AS k", *(quoted(c) for c in rows.columns if c != "k"))), "keys are new"),
    "a key twice": (lambda rows: rows.union(rows.where("k = 'a'")), "another hits"),
    "a count": (spoiled("CASE WHEN k = 'a' THEN `hits` + 1 ELSE `hits` END"), "1 keys have another hits"),
    "a decimal": (spoiled("CAST(`paid` + 0.01 AS decimal(38,2))"), "another paid"),
    "a double": (spoiled("`near` * 1.000001"), "another near"),
    "a sketch of distinct values": (spoiled("first_value(`about__hll`) OVER (PARTITION BY day)"), "another about__hll"),
    "a sketch of quantiles": (spoiled("first_value(`middle__kll`) OVER (PARTITION BY day)"), "another middle__kll"),
    "moments": (spoiled("struct(`var__moments`.n AS n, `var__moments`.mx AS mx, `var__moments`.sx * 1.00001 AS sx)"), "another var__moments"),
    "a set": (spoiled("slice(`seen__set`, 1, 1)"), "another seen__set"),
    "NULL for a value": (spoiled("CASE WHEN k = 'a' THEN CAST(NULL AS STRING) ELSE `low` END"), "1 keys have another low"),
}  # fmt: skip


# each is told apart by a comparison of its own; "a count" is in every run by the merge that is refused
ONE_OF_EACH_KIND = ("a key", "a new key", "a double", "a sketch of distinct values", "a sketch of quantiles", "moments")


@pytest.mark.parametrize(
    "kinds", [ONE_OF_EACH_KIND, pytest.param(WRONG.keys() - {*ONE_OF_EACH_KIND}, marks=pytest.mark.soak)]
)
def test_every_difference_of_a_key_is_found_and_named(table: Filled, kinds: Collection[str]) -> None:
    assert AGGREGATE.merging is not None
    before = table.stored().where("day = '2026-11-01'").cache()
    merged = united(table.session, AGGREGATE.merging, before).cache()
    assert not key_differences(table.session, AGGREGATE.merging, before, merged)
    for what in kinds:
        wrong, said = WRONG[what]
        found = key_differences(table.session, AGGREGATE.merging, before, wrong(merged))
        assert found, what
        assert said in str(found), (what, str(found))


def test_a_merge_that_would_change_a_value_is_refused_and_changes_nothing(
    table: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, said = WRONG["a count"]
    real, was = merging_module.united, log.latest_version(table.path)
    monkeypatch.setattr(merging_module, "united", lambda *words: wrong(real(*words)))
    with pytest.raises(MergeDiffers, match=said) as refused:
        table.merge()
    assert refused.value.code == "E_MERGE"
    assert log.latest_version(table.path) == was


def test_what_is_not_allowed_any_more_is_not_committed(table: Filled) -> None:
    was = log.latest_version(table.path)
    with pytest.raises(Conflict, match="a rollout is under way"):
        table.merge(refused=lambda: "a rollout is under way")
    assert log.latest_version(table.path) == was


class Killed(Exception):
    """The agent dies here."""


@pytest.mark.parametrize(
    ("point", "left"),
    [("before-commit-merge", COMMITS), pytest.param("after-commit-merge", 1, marks=pytest.mark.soak)],
)
def test_killed_around_its_commit_every_value_is_there_and_the_next_pass_ends_it(
    table: Filled, monkeypatch: pytest.MonkeyPatch, point: str, left: int
) -> None:
    def dies(name: str) -> None:
        if name == point:
            raise Killed

    with monkeypatch.context() as armed:
        armed.setattr("console.crash.point", dies)
        with pytest.raises(Killed):
            table.merge()
    assert hits(table.shown()) == hits_of(COMMITS)
    assert len(table.times("2026-11-01")) == left
    if left > 1:
        assert table.merge() is not None
        assert hits(table.shown()) == hits_of(COMMITS)


# -- receipts


def receipts_of(table: Filled) -> list[Receipt]:
    """The receipts of the step that has filled the table, measured as of now."""
    version, sides = log.latest_version(table.path), []
    for name, own in (("t", state("t", LANDED, kind="landing", partition_by=(), time="day")), ("agg/a-1", AGGREGATE)):
        path = str(table.place / name)
        at = log.latest_version(path)
        day, covered = sum_definition(own, path, at, "day")
        sides.append(Place(path=name, id=open_tables.table_id(path), version=at, time=day, columns=covered))
    how = Measured(*sides)
    sums = [
        row_sums_per_day(table.session.read.format("delta").load(str(table.place / side.path)), side.time, side.columns)
        for side in sides
    ]
    return [
        Receipt(
            rollout="r", step="backfill/agg/all", target="agg", source="t", day=day, fence=0, position=0, version=version,
            rows_in=sums[0][day].rows, checksum_in=sums[0][day].text, rows_out=sums[1][day].rows,
            checksum_out=sums[1][day].text, days=3, how=how,
        )
        for day in sums[1]
    ]  # fmt: skip


def verified(table: Filled, receipts: list[Receipt]) -> dict[str, Finding]:
    tables = {"agg": AGGREGATE, "t": state("t", LANDED, kind="landing", partition_by=())}
    plan = cast(Any, SimpleNamespace(release=SimpleNamespace(table=tables.get), steps=()))
    checks = Audit(table.place, plan, table.session)._of_receipts(receipts)
    return {check.subject.what: check.run() for check in checks}


def of_fewer_columns(receipts: list[Receipt]) -> list[Receipt]:
    """As an agent wrote them to which the target's last column was unknown."""
    assert receipts[0].how is not None
    source, target = receipts[0].how.source, receipts[0].how.target
    how = Measured(source, replace(target, columns=target.columns[:-1]))
    return [replace(receipt, how=how) for receipt in receipts]


def vacuumed(table: Filled) -> None:
    """Delete what no file of the newest version needs, as VACUUM does after the retention."""
    kept = {Path(uri.removeprefix("file://")).name for uri in DeltaTable(table.path).file_uris()}
    for file in Path(table.path).rglob("*.parquet"):
        if file.name not in kept and "_delta_log" not in file.parts:
            file.unlink()


def test_receipts_of_before_hold_after_merges_and_once_their_files_are_gone(table: Filled) -> None:
    receipts = receipts_of(table)
    assert {what: finding.ok for what, finding in verified(table, receipts).items()} == dict.fromkeys(
        ("source", "target", "since"), True
    )
    table.merge("2026-11-01")
    table.merge("NULL")
    assert verified(table, receipts)["target"].detail.endswith(f"are equal as of version {receipts[0].version}")
    vacuumed(table)
    found = verified(table, receipts)
    assert (found["target"].ok, found["since"].ok) == (True, True), found
    assert "3 days are equal as of today" in found["target"].detail
    # the sums that the merge kept are of all columns, and cannot be compared with those of fewer: unknown, never wrong
    other = verified(table, of_fewer_columns(receipts))["target"]
    assert other.ok is None
    assert "the sums of other columns were kept" in other.detail
    # of a day that has got more rows since, nothing is known, and of the others all
    land(table.place, COMMITS)
    follow(table.session, feeding(table.place))
    later = verified(table, receipts)["target"]
    assert (later.ok, later.days) == (None, ("2026-11-02", "2026-11-01", ""))
    assert "3 have got more rows since" in later.detail


def test_a_row_that_others_removed_after_a_merge_is_missed(table: Filled) -> None:
    receipts = receipts_of(table)
    table.merge()
    DeltaTable(table.path).delete("day = '2026-11-01' AND k = 'a'")
    vacuumed(table)
    found = verified(table, receipts)
    assert (found["target"].ok, found["target"].days) == (False, ("2026-11-01",))
    assert found["since"].ok is False
