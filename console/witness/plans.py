"""Witnesses for what a plan edits: which rows the new query of a table turns into others than the live one does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.drivers.replay import Replayer
from console.errors import ConsoleError, DataError
from console.model.live import Feed, Live, Release
from console.model.plan import Plan
from console.model.region import Region
from console.model.schema import types
from console.planning.compare import QueryDifference, compare
from console.witness.search import WitnessQuery, WitnessResult, find_witness, witness_query

Tables = Mapping[str, Mapping[str, str]]  # table → column → Spark type
Witnesses = Mapping[tuple[str, str, str], WitnessResult]  # by region, table, materialization
NO_ROW_CHANGES = "nothing to show: old rows and columns stay as they are"


@dataclass(frozen=True, slots=True)
class QueryEdit:
    """A query that feeds a table and says something else than the live one of the same name.

    old, new  compiled SQL
    tables    what either of them reads
    opaque    columns of the table whose values say nothing: the bytes of sketches
    """

    table: str
    materialization: str
    old: str
    new: str
    tables: Tables
    opaque: frozenset[str] = frozenset()


def query_edits(plan: Plan, was: Release | None) -> tuple[QueryEdit, ...]:
    """The edited queries of a plan, in the order of its nodes; () where nothing was live."""
    return tuple(_iter_edits(plan, was)) if was else ()


def witness_between(
    old: str,
    new: str,
    tables: Tables | None,
    spark: Replayer,
    *,
    found: QueryDifference | None = None,
    opaque: Iterable[str] = (),
) -> WitnessResult:
    """A witness of the difference of two queries; where none can be sought, the reason.

    found   what the comparison said, where it was asked already
    opaque  columns whose values say nothing
    """
    if not tables:
        return WitnessResult(None, 0, "rows can only be made where the columns are known: --schema FILE")
    found = found or compare(old, new, tables)
    if found.rows == "same" and not found.changed:
        return WitnessResult(None, 0, NO_ROW_CHANGES)
    hidden = {name.lower() for name in opaque}
    try:
        asked = witness_query(old, new, tables, found)
        pairs = tuple(pair for pair in asked.pairs if pair[0].lower() not in hidden)
        return find_witness(WitnessQuery(asked.old, asked.new, pairs, asked.tables), spark)
    except DataError as error:
        return WitnessResult(None, 0, f"not sought: {error}")
    except ConsoleError as error:  # what is compared stands without a Spark, too
        return WitnessResult(None, 0, f"not proven: {error}", unproven=True)


class WitnessFinder:
    """Seeks each edit once, whichever plan or region it is met in. One search at a time; `stop` is for any thread."""

    def __init__(self) -> None:
        self._known: dict[str, WitnessResult] = {}
        self._spark: Replayer | None = None
        self._stopped = False

    def known(self, edit: QueryEdit, conf: Mapping[str, str]) -> WitnessResult | None:
        """What an earlier search came to; None where there was none, or no Spark could be asked then."""
        found = self._known.get(_key(edit, conf))
        return None if found is None or found.unproven else found

    def seek(self, wanted: Sequence[QueryEdit], conf: Mapping[str, str]) -> Iterator[WitnessResult]:
        """An answer to each edit, in order. Blocks for seconds; a Spark is started with the first edit that needs one.

        conf  Spark settings of the region whose plan it is
        """
        with Replayer(conf) as spark:
            self._spark = spark
            if self._stopped:
                spark.stop()
            for edit in wanted:
                found = self.known(edit, conf)
                if found is None:
                    found = witness_between(edit.old, edit.new, edit.tables, spark, opaque=edit.opaque)
                    self._known[_key(edit, conf)] = found
                yield found

    def stop(self) -> None:
        """End the search that runs, and its Spark, at once: what it then says is worth nothing. There is no other after."""
        self._stopped = True
        if self._spark is not None:
            self._spark.stop()


def witnesses_of(plans: Sequence[Plan], lives: Sequence[Live], regions: Sequence[Region]) -> Witnesses:
    """A witness for every query whose edit a plan carries."""
    releases = {live.region: live.release for live in lives}
    confs = {region.name: dict(region.spark.conf) for region in regions}
    seeker, answers = WitnessFinder(), {}
    for plan in plans:
        edited = query_edits(plan, releases.get(plan.region))
        for edit, sought in zip(edited, seeker.seek(edited, confs.get(plan.region, {})), strict=True):
            answers[plan.region, edit.table, edit.materialization] = sought
    return answers


def _key(edit: QueryEdit, conf: Mapping[str, str]) -> str:
    return repr((edit.old, edit.new, edit.tables, sorted(edit.opaque), sorted(conf.items())))


def _iter_edits(plan: Plan, was: Release) -> Iterator[QueryEdit]:
    for node in plan.nodes:
        if node.kind != "table":
            continue
        before = {feed.materialization: feed for feed in was.feeds_into(node.name)}
        for feed in plan.release.feeds_into(node.name):
            old = before.get(feed.materialization)
            if old is not None and old.sql != feed.sql:
                tables = _tables(plan.release, was, (old, feed))
                opaque = _opaque(plan.release, was, node.name)
                yield QueryEdit(node.name, feed.materialization, old.sql, feed.sql, tables, opaque)


def _tables(now: Release, was: Release, feeds: Iterable[Feed]) -> dict[str, dict[str, str]]:
    """The columns of what the queries read, the old release's and the new one's together."""
    names = {name for feed in feeds for name in (feed.source, *feed.joins)}
    merged: dict[str, dict[str, str]] = {}
    for release in (was, now):
        for name in sorted(names):
            if state := release.table(name):
                merged.setdefault(name, {}).update(types(state.table.columns))
    return merged


def _opaque(now: Release, was: Release, name: str) -> frozenset[str]:
    states = [state for release in (was, now) if (state := release.table(name))]
    return frozenset(column.name for state in states for column in state.version.columns if column.type == "binary")
