"""Examples of one day's differences, read from both versions on request. They contain values, so they are never stored."""

from collections.abc import Callable, Sequence
from typing import Any

from console.agent.compared.pairing import earlier, exact_pairs
from console.agent.compared.records import ComparisonRecords
from console.agent.failure import cause, from_spark, kind
from console.agent.feeds.checksum import can_hash, hashables
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.agent.store.days import clamped_day, named_day
from console.agent.store.ledger import Releases
from console.errors import DataError, RegionError
from console.model.compared import EXAMPLES, ColumnRange, DayExamples, ExampleRows
from console.model.live import Release
from console.model.plan import Plan
from console.model.schema import quoted, types
from console.model.status import Status
from console.model.step import Comparison, Pair, Validate
from console.record import dataclass

Rows = Callable[[Any], list[list[Any]]]  # a DataFrame's rows as JSON values


@dataclass(frozen=True, slots=True)
class ComparedReleases:
    """A pipeline's releases and its newest rollout. path: version path → absolute path"""

    releases: Releases
    status: Status
    plan: Plan | None
    path: Callable[[str], str]


def day_examples(
    session: Any, of: ComparedReleases, records: ComparisonRecords, table: str, day: str, *, rows_of: Rows
) -> DayExamples:
    """Rows of one day of a table that differ between the versions which the newest rollout compares.

    day      UTC, as a comparison names it; "" for rows without a time
    rows_of  reads the rows of a DataFrame
    raises   DataError for a table that it does not compare; RegionError E_ONE_VERSION, E_GONE
    """
    plan = _comparison(of, table)
    old, new = _versions(of, records, plan)
    try:
        return _examples(session, plan, old, new, day, rows_of)
    except Exception as error:
        if from_spark(error) and kind(error) == "gone":
            message = f"{table} can no longer be read as it was compared: {cause(error)}"
            raise RegionError(message, hint="console show ID --days has the counts", code="E_GONE") from None
        raise


def _comparison(of: ComparedReleases, table: str) -> Comparison:
    steps = of.plan.steps if of.plan else ()
    compared = {each.table: each for step in steps if isinstance(step, Validate) for each in step.comparisons}
    if table not in compared:
        known = ", ".join(sorted(compared)) or "none"
        message = f"the newest rollout compares no table {table!r:.60} (it compares: {known})"
        raise DataError(message, hint="console history")
    return compared[table]


def _versions(of: ComparedReleases, records: ComparisonRecords, plan: Comparison) -> tuple[Pinned, Pinned]:
    """Both versions of the table, as of the recorded Delta versions, else the latest."""
    recorded = next(iter(records.newest(of.status.rollout, plan.table)), None)
    releases = {stored.release.id: stored.release for stored in of.releases.all()}
    sides = [
        _pinned(of, releases.get(of.status.was), plan.table, recorded.old_version if recorded else None),
        _pinned(of, releases.get(of.status.release), plan.table, recorded.new_version if recorded else None),
    ]
    return sides[0], sides[1]


def _pinned(of: ComparedReleases, release: Release | None, table: str, version: int | None) -> Pinned:
    state = release.table(table) if release else None
    path = of.path(state.version.path) if state else ""
    if state is None or not log.exists(path):
        raise RegionError(
            f"only one version of {table} is still here, of {of.status.was or 'none'} and {of.status.release}",
            hint="console history",
            code="E_ONE_VERSION",
        )
    return Pinned(state, path, log.latest_version(path) if version is None else version)


def _examples(session: Any, plan: Comparison, old: Pinned, new: Pinned, day: str, rows_of: Rows) -> DayExamples:
    kinds = types(new.state.table.columns)
    same = [pair for pair in (plan.pairs if plan.keys else exact_pairs(plan)) if can_hash(kinds[pair.new])]
    changed = [pair for pair in plan.changed if pair.old and can_hash(kinds[pair.new])]
    before = _of_day(old.rows(session), plan.old_name(plan.time), day)
    after = _of_day(new.rows(session), plan.time, day)
    return DayExamples(
        table=plan.table,
        day=day,
        old_version=old.version,
        new_version=new.version,
        differing=_apart(before, after, same, old, kinds, rows_of),
        changed=_apart(before, after, [*same, *changed], old, kinds, rows_of) if changed else ExampleRows(),
        ranges=tuple(_range(before, after, pair, old, kinds[pair.new], rows_of) for pair in changed),
    )


def _of_day(rows: Any, time: str, day: str) -> Any:
    """The rows of one day; all of a table without a time."""
    from pyspark.sql.functions import col

    if not time:
        return rows
    name = named_day(clamped_day(col(quoted(time))))
    return rows.where(name == day if day else name.isNull())


def _apart(
    before: Any, after: Any, pairs: Sequence[Pair], old: Pinned, kinds: dict[str, str], rows_of: Rows
) -> ExampleRows:
    """Rows that one side has more often than the other, each once; sorted by column, so that rows that differ only in
    the last columns are at the same place in both lists."""
    from pyspark.sql.functions import col, count_if, lit, xxhash64

    columns = tuple((pair.new, kinds[pair.new]) for pair in pairs)
    if not columns:
        return ExampleRows()
    sides = []
    for rows, values in (
        (before, [earlier(pair, old, kinds[pair.new]) for pair in pairs]),
        (after, [col(quoted(pair.new)) for pair in pairs]),
    ):
        named = rows.select(*(value.alias(name) for value, (name, _) in zip(values, columns, strict=True)))
        flagged = [each for value in hashables(columns) for each in (value.isNull(), value)]
        sides.append(named.withColumn("_row", xxhash64(*flagged)))
    marked = sides[0].select("_row", lit(1).alias("_old")).unionByName(sides[1].select("_row", lit(0).alias("_old")))
    totals = marked.groupBy("_row").agg(
        count_if(col("_old") == 1).alias("was"), count_if(col("_old") == 0).alias("now")
    )
    some = []
    for side, condition in zip(sides, ("was > now", "now > was"), strict=True):
        sampled = side.join(totals.where(condition).select("_row"), "_row", "left_semi").dropDuplicates(["_row"])
        names = [quoted(name) for name, _ in columns]
        ordered = sampled.orderBy(*(quoted(name) for name, kind in columns if "map<" not in kind)).select(*names)
        some.append(tuple(tuple(row) for row in rows_of(ordered.limit(EXAMPLES))))
    return ExampleRows(columns, some[0], some[1])


def _range(before: Any, after: Any, pair: Pair, old: Pinned, kind: str, rows_of: Rows) -> ColumnRange:
    from pyspark.sql.functions import col, lit
    from pyspark.sql.functions import max as greatest
    from pyspark.sql.functions import min as least

    ends: list[Any] = []
    for rows, value in ((before, earlier(pair, old, kind)), (after, col(quoted(pair.new)))):
        ordered = lit(None).cast("string") if "map<" in kind else value
        ends += rows_of(rows.agg(least(ordered).alias("least"), greatest(ordered).alias("greatest")))[0]
    return ColumnRange(
        column=pair.new, old_least=ends[0], old_greatest=ends[1], new_least=ends[2], new_greatest=ends[3]
    )
