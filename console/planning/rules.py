"""The planner's rules: problems of a region or a plan to be reported to the operator. Codes in docs/codes.md."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from console.errors import Problem
from console.model.live import Live, TableState, TableStats
from console.model.pipeline import Pipeline
from console.model.schema import Column, Table
from console.planning.cache.planner_cache import PlannerCache
from console.planning.diff import Diff
from console.planning.estimate import days_since
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.landing.forward_query import Continued, continued, renamed
from console.planning.landing.problems import in_an_adapter, not_as_declared
from console.planning.loss import history, protocol, values
from console.planning.loss.allowed import LOSSES
from console.planning.review.older_spark import lacking
from console.planning.routes.verdict import Recomputation, Verdict
from console.planning.sql.convert import read_wider
from console.planning.sql.tree import UnknownColumn, kind
from console.remedy import DropKey, Edit, Elsewhere, Flag, KeepLive, Remedy, SetKey, StopReading


def region_problems(pipeline: Pipeline, live: Live) -> list[Problem]:
    """Landing tables of a region that differ from their declaration, so that the pipeline cannot run there."""
    problems: list[Problem] = []
    for table in pipeline.tables:
        if table.kind != "landing":
            continue
        stats = live.table(table.name)
        problems += protocol.misspelt(table, stats, live.region)
        if stats is None:
            if not table.managed:
                problems.append(
                    Problem(
                        code="C110",
                        message=f"{live.region} has no landing table {table.name}",
                        where=table.where,
                        node=table.name,
                        remedies=(
                            Elsewhere(what="create it there"),
                            Edit(node=table.name, how="correct the name"),
                            SetKey(node=table.name, key="managed", value="true"),
                        ),
                    )
                )
            continue
        if unreadable := protocol.unreadable(table, stats, live.region):
            problems += unreadable
            continue  # nothing else of it was surveyed
        problems += protocol.cut(table, stats, live.region)
        problems += _landing_columns(table, stats, live)
    return problems


def _landing_columns(table: Table, stats: TableStats, live: Live) -> list[Problem]:
    actual = {column.name.lower(): column for column in stats.columns}
    before = live.release.table(table.name) if live.release else None
    was = {new: old for old, new in renamed(table, before).items()} if before else {}
    taken = (
        {part.lower() for column in before.table.columns for part in before.stored_in(column.name)} if before else ()
    )
    continuation = continued(table, before) if before else Continued()
    computed = {*continuation.computed, *continuation.converted, *continuation.refused}
    problems: list[Problem] = []
    for column in table.columns:
        if column.name in computed and before and before.table.column(column.name):
            continue
        old = was.get(column.name, column.name)
        declared = before.table.column(old) if before and table.managed else None
        if before is None or declared is None:
            own = None if table.managed and column.name.lower() in taken else actual.get(column.name.lower())
            problems += _landing_column(table, column, own, live)
            continue
        # the widest of its stored columns has the live type; a wider one is stored beside it
        actual_column = actual.get(before.stored_in(old)[-1].lower())
        if (
            actual_column is not None
            and actual_column.type == declared.type
            and read_wider(kind(declared.type), kind(column.type))
        ):
            continue
        problems += _landing_column(table, column, actual_column, live)
    return problems


def _landing_column(table: Table, column: Column, actual: Column | None, live: Live) -> list[Problem]:
    name = f"{table.name}.{column.name}"
    if actual is None:
        if table.managed and (column.nullable or column.default is not None):
            return []
        if table.managed:
            message = f"{name} is new and not nullable: older rows have no value"
            remedies: tuple[Remedy, ...] = (
                SetKey(node=table.name, key="nullable", value="true", columns=(column.name,)),
                SetKey(node=table.name, key="default", columns=(column.name,)),
            )
            return [Problem(code="C111", message=message, where=table.where, node=table.name, remedies=remedies)]
        message = f"{name} is declared, and the table in {live.region} has no such column"
        remedies = (
            Elsewhere(what="add it there first"),
            Edit(node=table.name, how="use an override for this region"),
        )
        return [Problem(code="C111", message=message, where=table.where, node=table.name, remedies=remedies)]
    try:
        if kind(actual.type) == kind(column.type):
            return []
    except ValueError:
        return []
    message = f"{name} is declared {column.type}, and is {actual.type} in {live.region}"
    cast_in = "cast in the materialization" if table.managed else in_an_adapter(table, "cast")
    there = SetKey(
        node=table.name, key="type", value=actual.type, columns=(column.name,),
        without="forward_query" if table.forward_query else "", effect=f"as it is there; {cast_in}",
    )  # fmt: skip
    return [Problem(code="C112", message=message, where=table.where, node=table.name, remedies=(there,))]


def dropped_but_read(
    problems: tuple[Problem, ...], unknown: Mapping[Problem, UnknownColumn], live: Live
) -> tuple[Problem, ...]:
    """Replace "there is no such column" by C104 if the live release still has the column."""
    if live.release is None:
        return problems
    live_columns = {
        (state.table.name, column.name.lower()) for state in live.release.tables for column in state.table.columns
    } | {(state.table.name, "") for state in live.release.tables}
    return tuple(_dropped(problem, unknown.get(problem), live_columns) or problem for problem in problems)


def _dropped(problem: Problem, read: UnknownColumn | None, live_columns: set[tuple[str, str]]) -> Problem | None:
    table = next((table for table in read.tables if (table, read.column) in live_columns), None) if read else None
    if read is None or table is None:
        return None
    what = KeepLive(node=table, column=read.column)
    message = f"{problem.node} still reads {'.'.join(filter(None, (table, read.column)))}, which this change drops"
    remedies = (StopReading(node=problem.node, table=table, column=read.column), what)
    return Problem(code="C104", message=message, where=problem.where, node=problem.node, remedies=remedies)


def plan_problems(desired: Desired, verdicts: Mapping[str, Verdict], live: Live, cache: PlannerCache) -> list[Problem]:
    """Problems of a plan that is otherwise possible."""
    forward_queries = [p for verdict in verdicts.values() for p in _stale(verdict, desired, verdicts, live, cache)]
    landings = [verdict for verdict in verdicts.values() if verdict.is_landing]
    problems = [problem for verdict in landings for problem in _protocol(verdict, live)]
    for verdict in landings:
        if verdict.wanted is not None:
            problems += not_as_declared(verdict.wanted.table, live.table(verdict.name), verdict.live, live.region)
    for verdict in verdicts.values():
        if verdict.rebuilt or verdict.states_read:
            problems += of_table(verdict, desired, verdicts, live, cache)
    problems += [note for verdict in verdicts.values() for note in _expiring_keys(verdict)]
    problems += lacking(desired, live, cache)
    problems = [*(_leading_on(problem, problems) for problem in forward_queries), *dict.fromkeys(problems)]
    return [_enough_below(problem, verdicts, live, cache) for problem in problems]


def _enough_below(problem: Problem, verdicts: Mapping[str, Verdict], live: Live, cache: PlannerCache) -> Problem:
    """A warning without remedies to keep a table's stored rows, if a table below would then be refused for what these lack."""
    keeping = [r for r in problem.remedies if isinstance(r, SetKey) and r.key in ("history", "forward_query")]
    verdict = verdicts.get(problem.node) if keeping and problem.severity == "warn" else None
    if verdict is None or not _reads_sources(verdict) or _are_enough(verdict, verdicts, live, cache):
        return problem
    return replace(problem, hint="", remedies=tuple(r for r in problem.remedies if r not in keeping))


def _are_enough(verdict: Verdict, verdicts: Mapping[str, Verdict], live: Live, cache: PlannerCache) -> bool:
    """Whether the tables that are rebuilt below could be computed from a table's stored rows. verdicts: sources first"""
    below = {verdict.name}
    for other in verdicts.values():
        if other.wanted is None or not _reads_sources(other) or below.isdisjoint(f.source for f in other.wanted.feeds):
            continue
        below.add(other.name)
        lost = history.retention(other.wanted, other.live, verdict.wanted, live, cache, ())
        if any(problem.severity == "refuse" for problem in lost):
            return False
    return True


def _reads_sources(verdict: Verdict) -> bool:
    """Whether its rows are all computed from its sources."""
    return verdict.rebuilt and verdict.recomputed is not None and not verdict.recomputed.since


def _leading_on(problem: Problem, others: Collection[Problem]) -> Problem:
    """C140 with a reworded remedy: dropping the choice does not help against the loss that is refused as well."""
    lost = any(o.node == problem.node and o.code in LOSSES and o.severity == "refuse" for o in others)
    if problem.code != "C140" or not lost:
        return problem
    remedies = tuple(
        replace(remedy, effect="days that the source has lost are refused separately")
        if isinstance(remedy, DropKey)
        else remedy
        for remedy in problem.remedies
    )
    return replace(problem, hint="", remedies=remedies)


def _stale(
    verdict: Verdict, desired: Desired, verdicts: Mapping[str, Verdict], live: Live, cache: PlannerCache
) -> tuple[Problem, ...]:
    """A verdict's problems, without the remedy to drop a stale forward query if the source has lost rows that the
    replay would then need."""
    if verdict.wanted is None or verdict.recomputed is not None or all(p.code != "C109" for p in verdict.problems):
        return verdict.problems
    computed = replace(verdict, copied=None, recomputed=Recomputation())
    again = _replayed(computed, verdict.wanted, desired, {**verdicts, verdict.name: computed}, live, cache)
    if all(problem.severity != "refuse" for problem in again):
        return verdict.problems
    return tuple(
        replace(p, hint="", remedies=tuple(r for r in p.remedies if not isinstance(r, DropKey)))
        if p.code == "C109" and p.severity == "refuse"
        else p
        for p in verdict.problems
    )


def _expiring_keys(verdict: Verdict) -> list[Problem]:
    """C145: retention deletes keys of a table of kind `latest`; reported with the plan that introduces it."""
    table, live = verdict.wanted.table if verdict.wanted else None, verdict.live.table if verdict.live else None
    if table is None or table.retention_days is None or not table.order_by:
        return []
    if live is not None and (live.retention_days, live.order_by) == (table.retention_days, table.order_by):
        return []
    message = f"{table.name}: a key whose newest row is older than {table.retention_days} days, or has no time, is dropped with it"
    return [Problem(code="C145", message=message, where=table.where, severity="note", node=table.name)]


def of_table(
    verdict: Verdict, desired: Desired, verdicts: Mapping[str, Verdict], live: Live, cache: PlannerCache
) -> list[Problem]:
    """Problems of one table's rows under its verdict. verdicts: of all tables, including this one"""
    if verdict.wanted is None:
        return []
    problems: list[Problem] = []
    if verdict.states_read and verdict.live is not None:
        problems += values.estimates(verdict.wanted, verdict.live, verdict.states_read)
    if not verdict.rebuilt or verdict.is_landing:
        return problems
    if verdict.recomputed is not None:
        problems += _replayed(verdict, verdict.wanted, desired, verdicts, live, cache)
    if verdict.filters and (verdict.recomputed is None or verdict.recomputed.since):
        problems += history.filtered(verdict.wanted, desired.tables, live, cache)
        problems += _new_filters(verdict, verdict.wanted) if verdict.recomputed is None else []
    if verdict.live is not None and verdict.diff is not None:
        forwarded = verdict.copied.sql if verdict.copied is not None and verdict.recomputed is None else ""
        problems += values.types(verdict.wanted, verdict.diff, cache, forward=forwarded)
        problems += values.partitions(verdict.wanted, verdict.diff)
        problems += _removed_columns(verdict, verdict.wanted, verdict.diff)
    return problems


def _replayed(
    verdict: Verdict,
    wanted: DesiredTable,
    desired: Desired,
    verdicts: Mapping[str, Verdict],
    live: Live,
    cache: PlannerCache,
) -> list[Problem]:
    problems: list[Problem] = []
    if verdict.recomputed is not None and verdict.recomputed.since and verdict.history:
        problems += history.filtered(wanted, desired.tables, days_since(live, verdict.recomputed.since), cache)
    elif verdict.recomputed is not None and verdict.recomputed.since:
        problems.append(_kept_days(verdict, wanted.table, verdict.recomputed.since))
    else:
        for source in sorted(_roots(verdict.name, verdicts)):
            origin = desired.tables.get(source)
            problems += history.retention(wanted, verdict.live, origin, live, cache, _remedies(verdict))
            problems += history.spanning(source, live)
        if verdict.live is not None:
            problems += history.filtered(wanted, desired.tables, live, cache)
    return problems + (_computed_again(verdict, wanted, verdict.live) if verdict.live is not None else [])


def _computed_again(verdict: Verdict, wanted: DesiredTable, before: TableState) -> list[Problem]:
    same_rows = verdict.diff is not None and verdict.diff.rows
    estimates = values.estimates(wanted, before) if same_rows else []
    repeatable = values.repeatable(wanted, carried=verdict.may_be_carried)
    return [*repeatable, *estimates, *_new_filters(verdict, wanted)]


def _kept_days(verdict: Verdict, table: Table, start: str) -> Problem:
    """C118: days that the source has lost are copied. start: the first one that is computed"""
    without = [c.name for c in table.columns if verdict.diff is not None and c.name in verdict.diff.computed]
    message = f"days of {table.name} before {start} keep their rows; {', '.join(without)} get what is declared for them"
    remedy: Remedy = SetKey(node=table.name, key="forward_query", effect="computes them")
    if table.kind == "aggregate":
        message = (
            f"days of {table.name} before {start} are gone in its source and keep their states: there {verdict.older}"
        )
        remedy = Edit(node=table.name, how="a `default:` is shown instead of NULL")
    return Problem(
        code="C118", message=message, where=table.where, severity="warn", node=table.name, remedies=(remedy,)
    )


def _remedies(verdict: Verdict) -> tuple[Remedy, ...]:
    """Alternative remedies, each of which keeps the rows that a replay would lose."""
    remedies: list[Remedy] = [verdict.remedy] if verdict.remedy is not None else []
    if verdict.may_be_given:
        remedies.append(SetKey(node=verdict.name, key="forward_query", effect="carries the older days"))
    if verdict.may_be_carried:
        effect = "copies the existing rows"
        remedies.append(SetKey(node=verdict.name, key="history", value="carry", effect=effect))
    return tuple(remedies)


def _roots(name: str, verdicts: Mapping[str, Verdict]) -> frozenset[str]:
    """The tables that a replay ultimately reads: those that are not rebuilt, or that copy their own rows."""
    verdict = verdicts[name]
    if verdict.wanted is None or not _reads_sources(verdict):
        return frozenset({name})
    return frozenset().union(*(_roots(feed.source, verdicts) for feed in verdict.wanted.feeds))


def _new_filters(verdict: Verdict, wanted: DesiredTable) -> list[Problem]:
    """C121: the same rows, with a filter added."""
    if not verdict.filters:
        return []
    message = f"{wanted.table.name}: rows that do not pass the new filter of {', '.join(verdict.filters)} are left out of the new version"
    return [_left_behind("C121", message, wanted)]


def _left_behind(code: str, message: str, wanted: DesiredTable) -> Problem:
    name, kept = wanted.table.name, "the previous version keeps them until cleanup"
    where = wanted.table.where
    return Problem(
        code=code, message=message, where=where, severity="warn", node=name, remedies=(Elsewhere(what=kept),)
    )


def _removed_columns(verdict: Verdict, wanted: DesiredTable, diff: Diff) -> list[Problem]:
    """C116, unless the files are taken over with all of their columns."""
    if not diff.hidden or (verdict.copied is not None and verdict.copied.linked):
        return []
    message = f"{wanted.table.name} is rewritten without {', '.join(diff.hidden)}"
    return [_left_behind("C116", message, wanted)]


def _protocol(verdict: Verdict, live: Live) -> list[Problem]:
    """C122: a column type that needs a Delta table feature, in a table that others may read with older tools."""
    if verdict.wanted is None:
        return []
    table = verdict.wanted.table
    new, missing = protocol.raised(table, live.table(verdict.name))
    if not missing:
        return []
    message = (
        f"{', '.join(c.name for c in new)} would raise the Delta protocol of {table.name} ({', '.join(missing)}):"
        " this cannot be undone, and older readers are locked out"
    )
    remedies = (Edit(node=table.name, how="choose another type"), Flag(flag="--allow-protocol", effect="accepts it"))
    return [
        Problem(code="C122", message=message, where=table.where, severity="refuse", node=table.name, remedies=remedies)
    ]
