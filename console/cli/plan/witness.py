"""Witnesses on request: which rows an edit of a query turns into others, for `compare` and for a plan's tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from console.cli.figures import count, table
from console.errors import ConsoleError, DataError
from console.model.live import Live, Release
from console.model.plan import Plan
from console.model.region import Region
from console.model.schema import types
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.replay import Ran, Replayer
    from console.planning.compare import QueryDifference
    from console.witness import Sought

Witnesses = Mapping[tuple[str, str, str], "Sought"]  # by region, table, materialization
Tables = Mapping[str, Mapping[str, str]]
_SHOWN = 12  # rows of one result
_SAME = "nothing to show: old rows and columns stay as they are"


def between(
    old: str,
    new: str,
    tables: Tables | None,
    spark: "Replayer",
    *,
    found: "QueryDifference | None" = None,
    opaque: Iterable[str] = (),
) -> "Sought":
    """A witness of the difference of two queries; where none can be sought, the reason.

    found   what the comparison said, where it was asked already
    opaque  columns whose values say nothing: the bytes of sketches
    """
    from console.planning.compare import compare
    from console.witness import Question, Sought, question, seek

    if not tables:
        return Sought(None, 0, "rows can only be made where the columns are known: --schema FILE")
    found = found or compare(old, new, tables)
    if found.rows == "same" and not found.changed:
        return Sought(None, 0, _SAME)
    hidden = {name.lower() for name in opaque}
    try:
        asked = question(old, new, tables, found)
        pairs = tuple(pair for pair in asked.pairs if pair[0].lower() not in hidden)
        return seek(Question(asked.old, asked.new, pairs, asked.tables), spark)
    except DataError as error:
        return Sought(None, 0, f"not sought: {error}")
    except ConsoleError as error:  # what is compared stands without a Spark, too
        return Sought(None, 0, f"not proven: {error}")


def of_plans(plans: Sequence[Plan], lives: Sequence[Live], regions: Sequence[Region]) -> Witnesses:
    """A witness for every query whose edit a plan carries; each edit is sought once."""
    from console.drivers.replay import Replayer

    releases = {live.region: live.release for live in lives}
    confs = {region.name: dict(region.spark.conf) for region in regions}
    known: dict[object, Sought] = {}
    answers: dict[tuple[str, str, str], Sought] = {}
    for plan in plans:
        was = releases.get(plan.region)
        if was is None:
            continue
        with Replayer(confs.get(plan.region)) as spark:
            for name, feed, old, new in _edited(plan, was):
                tables = _tables(plan.release, was, (old, new))
                opaque = _opaque(plan.release, was, name)
                key = (old.sql, new.sql, repr(tables), repr(sorted(confs.get(plan.region, {}).items())))
                if key not in known:
                    known[key] = between(old.sql, new.sql, tables, spark, opaque=opaque)
                answers[plan.region, name, feed] = known[key]
    return answers


def _edited(plan: Plan, was: Release) -> "Iterable[tuple[str, str, Any, Any]]":
    """(table, materialization, old feed, new feed) where one of the same name says something else."""
    for node in plan.nodes:
        if node.kind != "table":
            continue
        before = {feed.materialization: feed for feed in was.feeds_into(node.name)}
        for feed in plan.release.feeds_into(node.name):
            old = before.get(feed.materialization)
            if old is not None and old.sql != feed.sql:
                yield node.name, feed.materialization, old, feed


def _tables(now: Release, was: Release, feeds: Iterable[Any]) -> dict[str, dict[str, str]]:
    """The columns of what the queries read, the old release's and the new one's together."""
    names = {name for feed in feeds for name in (feed.source, *feed.joins)}
    merged: dict[str, dict[str, str]] = {}
    for release in (was, now):
        for name in names:
            if state := release.table(name):
                merged.setdefault(name, {}).update(types(state.table.columns))
    return merged


def _opaque(now: Release, was: Release, name: str) -> set[str]:
    states = [state for release in (was, now) if (state := release.table(name))]
    return {column.name for state in states for column in state.version.columns if column.type == "binary"}


def witness_data(sought: "Sought") -> dict[str, Any]:
    """For `--output json`: the tables' rows and what each query gives, or why there is none."""
    found = sought.witness
    if found is None:
        return {"found": False, "tried": sought.tried, "why": sought.why}
    tables = {name: {"columns": dict(given.columns), "rows": given.rows} for name, given in found.tables.items()}
    results = {"old": _ran_data(found.old), "new": _ran_data(found.new)}
    return {"found": True, "tried": sought.tried, "replayed_on": "spark", "tables": tables, **results}


def _ran_data(ran: "Ran") -> dict[str, Any]:
    return {"error": ran.error} if ran.error else {"columns": ran.columns, "rows": ran.rows}


def witness_text(sought: "Sought", lead: str = "witness") -> str:
    """The rows, and below them what old and new make of them; or one line saying that there is none."""
    found = sought.witness
    if found is None:
        return safe_text(f"{lead}: none; {sought.why}" if sought.why != _SAME else f"{lead}: {sought.why}")
    lines = [safe_text(f"{lead}, replayed on Spark:")]
    for name, given in found.tables.items():
        lines += _rows(f"{name}, {count(len(given.rows), 'row')}", [column for column, _ in given.columns], given.rows)
    for word, ran in (("old", found.old), ("new", found.new)):
        if ran.error:
            lines.append(f"  {word} fails: {safe_text(ran.error)}")
        else:
            lines += _rows(f"{word} gives {count(len(ran.rows), 'row')}", ran.columns, ran.rows)
    return "\n".join(lines)


def _rows(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    if not rows:
        return [f"  {safe_text(title)}"]
    cells = [[_cell(value) for value in row] for row in rows[:_SHOWN]]
    more = [f"    … and {len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []
    return [f"  {safe_text(title)}", table([safe_text(head) for head in heads], cells, indent=4), *more]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{safe_text(value)}'" if isinstance(value, str) else safe_text(str(value))


def witnesses_text(answers: Witnesses) -> str:
    """All of a fleet, regions with the same one together."""
    together: dict[tuple[str, str, int], list[str]] = {}
    for (region, name, feed), sought in answers.items():
        together.setdefault((name, feed, id(sought)), []).append(region)
    by_id = {id(sought): sought for sought in answers.values()}
    blocks = [
        witness_text(by_id[which], f"{', '.join(regions)}: {name} by {feed}: witness")
        for (name, feed, which), regions in together.items()
    ]
    return "\n\n".join(blocks) or "no query of a table is edited: there is nothing to witness"


def witnesses_data(answers: Witnesses) -> list[dict[str, Any]]:
    return [
        {"region": region, "table": name, "materialization": feed, **witness_data(sought)}
        for (region, name, feed), sought in answers.items()
    ]
