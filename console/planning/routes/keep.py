"""Nothing to do: the live version already has the wanted rows, values, layout and declaration."""

from dataclasses import replace

from console.model.live import Release
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.diff import Diffs, same_declaration
from console.planning.fingerprint import Desired
from console.planning.landing.problems import another_day
from console.planning.reuse import live_feeds
from console.planning.routes import metadata
from console.planning.routes.change import Change
from console.planning.routes.verdict import Verdict

_UNCHANGED = Memo[dict[str, Verdict]](256)


def verdict(change: Change) -> Verdict | None:
    wanted, live, diff = change.wanted, change.live, change.diff
    if change.is_landing:
        same = not diff.settings and not diff.hidden and not diff.computed
        if not same or not same_declaration(replace(wanted.table, accepts_until=live.table.accepts_until), live.table):
            return None
        return Verdict(
            name=change.name, action="keep", why="unchanged", wanted=wanted, live=live, diff=diff,
            problems=(*metadata.of_landing(change), *another_day(wanted.table, live.table)),
        )  # fmt: skip
    if not change.stays or not diff.readable or not diff.plain or diff.settings:
        return None
    return Verdict(
        name=change.name, action="keep", why="unchanged", wanted=wanted, live=live, diff=diff, columns=diff.columns,
        needs=change.feeds.needs, problems=change.unused_forward_query("nothing of it has to be computed"),
    )  # fmt: skip


def unchanged(desired: Desired, release: Release, diffs: Diffs, cache: PlannerCache) -> dict[str, Verdict]:
    """Tables that are unchanged, as is everything upstream of them: the same for all regions of a release, regardless of their rows."""
    return cache.by_identity(_UNCHANGED, lambda: _untouched(desired, release, diffs), desired, release)


def _untouched(desired: Desired, release: Release, diffs: Diffs) -> dict[str, Verdict]:
    same: dict[str, Verdict] = {}
    for name, wanted in desired.tables.items():
        live = release.table(name)
        if (
            live is None
            or not same_declaration(wanted.table, live.table)
            or wanted.table.forward_query
            or wanted.table.history
        ):
            continue
        diff = diffs.tables[name]
        above = live_feeds.of((*wanted.feeds, *release.feeds_into(name)))
        if diff.readable and diff.layout and diff.plain and not diff.settings and above <= same.keys():
            same[name] = Verdict(
                name=name, action="keep", why="unchanged", wanted=wanted, live=live, diff=diff, read=live.read
            )
    return same
