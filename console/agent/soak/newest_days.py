"""Values of two versions of a table, on the days that changed since the last look and on the newest ones."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from console.agent.compared.by_day import day_records
from console.agent.compared.checks import columns_check, compared_days, rows_check
from console.agent.compared.quarantined import affected_tables
from console.agent.compared.resumed import stored_time
from console.agent.compared.round import ComparisonRound
from console.agent.execution.validation import side_of, version_path
from console.agent.feeds.live_feed import stalled_targets
from console.agent.recount.pinned_tables import Pinned
from console.agent.rollout.context import RolloutContext
from console.agent.soak.counted_days import shared_days
from console.agent.soak.looking import older_release
from console.model.event import Checked
from console.model.live import Day
from console.model.slices import Slice, cut
from console.model.step import Comparison, Validate

NEWEST = 2  # days that are compared in each round
CHANGED_BYTES = 64 << 20  # of the days that changed, in one round; others follow in the next ones
SMALL_BYTES = 256 << 20  # up to which a table is read for days that share files with others
SUFFIX = ", newest days"  # of the names of the checks, which the validation has for all days

Extent = tuple[int, int]  # rows and bytes of a day


@dataclass(slots=True)
class NewestRows:
    """The unchanged columns of each rebuilt table. A table of rows alone: others are merged, or joined with tables as of now.

    seen  path of a new version → day → its extent in the log when it was last equal
    """

    seen: dict[str, dict[str, Extent]] = field(default_factory=dict)

    def __call__(self, context: RolloutContext, pins: Mapping[str, int]) -> Iterator[Checked]:
        older = older_release(context)
        if older is None:
            return
        stalled = stalled_targets(context.follower.feeds(context.plan.pipeline))
        lacking = affected_tables(context)
        for step in context.plan.steps:
            for plan in step.comparisons if isinstance(step, Validate) else ():
                # what is sent to a promoted landing table is relayed to the version before
                sent = context.before is not None and context.state(plan.table).table.kind == "landing"
                merged = plan.keys or plan.joins or plan.other_rows or not plan.time
                paths = [version_path(context, plan.table, side) for side in (older, context.plan.release)]
                known = all(path in pins and path not in stalled for path in paths)
                if known and not (sent or merged or plan.table in lacking):
                    sides = (side_of(context, plan.table, side, dict(pins)) for side in (older, context.plan.release))
                    yield from self._of_table(context, replace(plan, changed=()), *sides)

    def _of_table(self, context: RolloutContext, plan: Comparison, old: Pinned, new: Pinned) -> Iterator[Checked]:
        column = stored_time(new.state, plan.time)
        if not column:
            return
        stats, before = (context.stats(plan.table, side.path, column, side.version) for side in (new, old))
        seen, small = self.seen.get(new.path), stats.bytes + before.bytes <= SMALL_BYTES
        wanted = days_to_compare(stats.days, seen, datetime.now(UTC), small=small)
        session, portions = context.spark.session(), _portions(cut(stats.days), wanted)
        if not portions:
            return
        with context.jobs(session, f"newest rows of {plan.table}"):
            parts = ComparisonRound(portions=portions)
            records = [record for each in day_records(session, plan, old, new, parts) for record in each]
        days = compared_days(records)
        for check in (rows_check(plan, days, records), columns_check(plan, days, records)):
            context.check_halt()
            yield replace(check, check=check.check + SUFFIX, summaries=())
        extents = {day.day: (day.rows, day.bytes) for day in stats.days}
        differing = {day.day for day in days if not day.equal}
        known = {**(extents if seen is None else seen), **{day: extents[day] for day in wanted}}
        self.seen[new.path] = {day: extent for day, extent in known.items() if day not in differing}


def days_to_compare(
    days: Sequence[Day], seen: Mapping[str, Extent] | None, now: datetime, *, small: bool
) -> tuple[str, ...]:
    """The newest days, and those that changed since they were last equal, as far as their bytes go; newest first.

    A row with a time in the future is not newer than what arrives today.

    days   of the new version, in any order
    seen   None before the first look: what was there then has been validated
    small  whether a day may be read from files of all days
    """
    low, high = ("", "") if small else shared_days(days)
    by_name = {day.day: day for day in days if not (low and (not day.day or low <= day.day <= high))}
    tomorrow = (now + timedelta(days=1)).date().isoformat()
    newest = [name for name in sorted(by_name, reverse=True) if name and name <= tomorrow][:NEWEST]
    changed, left = list[str](), CHANGED_BYTES
    if seen is None:
        return tuple(newest)
    for name in sorted({*by_name} - {*newest}, reverse=True):
        day = by_name[name]
        if (day.rows, day.bytes) != seen.get(name) and left > 0:
            changed.append(name)
            left -= day.bytes
    return tuple(sorted({*newest, *changed}, reverse=True))


def _portions(slices: Sequence[Slice], wanted: Collection[str]) -> tuple[tuple[Slice, ...], ...]:
    """The slices of these days, in runs without a gap."""
    chosen = [piece for piece in slices if ("" if piece.null else piece.label) in wanted]
    runs = groupby(enumerate(chosen), key=lambda each: each[1].index - each[0])
    return tuple(tuple(piece for _, piece in run) for _, run in runs)
