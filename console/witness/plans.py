"""Witnesses of a plan's edits: rows for which the new query of a table gives another result than the live one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from console.drivers.replay import Replayer
from console.errors import ConsoleError, DataError
from console.model.live import Feed, Live, Release
from console.model.plan import Plan
from console.model.region import Region
from console.model.schema import types
from console.planning.compare import QueryDifference, compare
from console.witness.search import NoWitness, WitnessResult, find_witness, witness_query

Tables = Mapping[str, Mapping[str, str]]  # table → column → Spark type
Witnesses = Mapping[tuple[str, str, str], WitnessResult]  # by region, table, materialization
NO_ROW_CHANGES = "nothing to show: old rows and columns stay as they are"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEdit:
    """A query that feeds a table and differs from the live one of the same name.

    old, new  compiled SQL
    tables    columns of the tables that either of them reads
    opaque    columns of the table whose values are not comparable: the bytes of sketches
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
    difference: QueryDifference | None = None,
    opaque: Iterable[str] = (),
) -> WitnessResult:
    """A witness of the difference of two queries, or why there is none.

    difference  result of the comparison, if it was made already
    opaque      columns whose values are not comparable
    """
    if not tables:
        return WitnessResult(None, 0, "rows can only be made if the columns are known: --schema FILE")
    difference = difference or compare(old, new, tables)
    if difference.rows == "same" and not difference.changed:
        return WitnessResult(None, 0, NO_ROW_CHANGES, NoWitness.UNCHANGED)
    hidden = {name.lower() for name in opaque}
    try:
        query = witness_query(old, new, tables, difference)
        pairs = tuple(pair for pair in query.pairs if pair[0].lower() not in hidden)
        return find_witness(replace(query, pairs=pairs), spark)
    except DataError as error:
        return WitnessResult(None, 0, f"not searched: {error}")
    except ConsoleError as error:  # the comparison is valid without Spark too
        return WitnessResult(None, 0, f"not confirmed: {error}", NoWitness.UNAVAILABLE)


class WitnessFinder:
    """Searches for each edit once, for all plans and regions. One search at a time; `stop` may be called by any thread."""

    def __init__(self) -> None:
        self._results: dict[str, WitnessResult] = {}
        self._spark: Replayer | None = None
        self._stopped = False

    def cached(self, edit: QueryEdit, conf: Mapping[str, str]) -> WitnessResult | None:
        """Result of an earlier search; None if there was none, or if Spark was not available then."""
        result = self._results.get(_key(edit, conf))
        return None if result is None or result.unavailable else result

    def search(self, edits: Sequence[QueryEdit], conf: Mapping[str, str]) -> Iterator[WitnessResult]:
        """The result for each edit, in order. Blocks for seconds; Spark is started by the first edit that needs it.

        conf  Spark settings of the region whose plan it is
        """
        with Replayer(conf) as spark:
            self._spark = spark
            if self._stopped:
                spark.stop()
            for edit in edits:
                result = self.cached(edit, conf)
                if result is None:
                    result = witness_between(edit.old, edit.new, edit.tables, spark, opaque=edit.opaque)
                    self._results[_key(edit, conf)] = result
                yield result

    def stop(self) -> None:
        """End the running search and its Spark at once, for good; the result of that search is to be ignored."""
        self._stopped = True
        if self._spark is not None:
            self._spark.stop()


def witnesses_of(plans: Sequence[Plan], lives: Sequence[Live], regions: Sequence[Region]) -> Witnesses:
    """The result for every query that a plan edits."""
    releases = {live.region: live.release for live in lives}
    confs = {region.name: dict(region.spark.conf) for region in regions}
    finder, results = WitnessFinder(), {}
    for plan in plans:
        edited = query_edits(plan, releases.get(plan.region))
        for edit, result in zip(edited, finder.search(edited, confs.get(plan.region, {})), strict=True):
            results[plan.region, edit.table, edit.materialization] = result
    return results


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
                yield QueryEdit(
                    table=node.name,
                    materialization=feed.materialization,
                    old=old.sql,
                    new=feed.sql,
                    tables=tables,
                    opaque=opaque,
                )


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
