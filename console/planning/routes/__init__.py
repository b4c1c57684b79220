"""Stage 5, route: the cheapest exact way from the live release to the wanted one, table by table, sources first.

A route is a row of `console.model.plan.ACTIONS`, which defines when it is tried, and the module here of the same name.
The module's function `verdict` returns the verdict of a table that takes this route, or None if it cannot.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Protocol, runtime_checkable

from console.model.live import Live
from console.model.plan import ACTIONS, Action
from console.model.schema import history_word
from console.planning.cache.planner_cache import PlannerCache
from console.planning.diff import Diffs
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.landing import new_version, storage
from console.planning.landing.adapter import is_new_adapter
from console.planning.routes import create, drop, keep
from console.planning.routes.change import Change
from console.planning.routes.history.choice import applied, unused
from console.planning.routes.verdict import LiveCopy, Verdict, Verdicts
from console.planning.sql.reads import Pick, compose

_NEW = "the table is new"
NOTHING_CHOSEN: Mapping[str, str] = {}


@runtime_checkable
class Route(Protocol):
    def verdict(self, change: Change, /) -> Verdict | None: ...


def _named(action: Action) -> Route:
    route = import_module(f"{__name__}.{action}")
    assert isinstance(route, Route), f"{action} has no verdict"
    return route


# the cheapest first; the last one is possible for every table
ROUTES: tuple[Route, ...] = tuple(
    _named(action) for action in sorted(ACTIONS, key=lambda action: ACTIONS[action].tried) if ACTIONS[action].tried
)


def route(
    desired: Desired, live: Live, diffs: Diffs, cache: PlannerCache, history: Mapping[str, str] = NOTHING_CHOSEN
) -> Verdicts:
    """A verdict for every table wanted or live. history: table → choice that overrides the one in its file"""
    release = live.release
    same = keep.unchanged(desired, release, diffs, cache) if release else {}
    verdicts: dict[str, Verdict] = {}
    for name, wanted in desired.tables.items():
        if name in same and name not in history:
            verdicts[name] = same[name]
            continue
        verdicts[name] = _verdict(wanted, desired, live, diffs, verdicts, cache=cache, history=history)
    for state in release.tables if release else ():
        if state.table.name not in desired.tables:
            verdicts[state.table.name] = drop.verdict(state)
    exposed: dict[str, set[str]] = {}
    for verdict in verdicts.values():
        for source, columns in verdict.needs.items():
            exposed.setdefault(source, set()).update(columns)
    return Verdicts(
        {n: v if v is same.get(n) else _with_read(v, exposed.get(n, set()), live, cache) for n, v in verdicts.items()}
    )


def _verdict(
    wanted: DesiredTable, desired: Desired, live: Live, diffs: Diffs, verdicts: dict[str, Verdict],
    *, cache: PlannerCache, history: Mapping[str, str],
) -> Verdict:  # fmt: skip
    name, release = wanted.table.name, live.release
    state = release.table(name) if release else None
    chosen = history_word(history.get(name, wanted.table.history))
    if state is None or release is None or is_new_adapter(wanted, state):
        made = create.verdict(wanted, live)
        return made if chosen is None else replace(made, problems=(*made.problems, unused(wanted.table, chosen, _NEW)))
    change = Change(
        wanted=wanted, live=state, diff=diffs.tables[name], release=release, desired=desired, region=live,
        verdicts=verdicts, cache=cache, choice=chosen, chosen_now=name in history,
    )  # fmt: skip
    possible = (route.verdict(change) for route in ROUTES)
    return applied(change, next(verdict for verdict in possible if verdict is not None))


def _stored_copy(verdict: Verdict, region: Live) -> LiveCopy:
    stats = region.table(verdict.name)
    assert stats is not None
    assert verdict.storage is not None
    return LiveCopy(new_version.copied(verdict.name, stats, verdict.storage), states=True)


def _with_read(verdict: Verdict, exposed: set[str], region: Live, cache: PlannerCache) -> Verdict:
    """The verdict with the new release's read of a version that is kept.

    exposed  live columns that feeds from it still need
    """
    wanted, live, diff = verdict.wanted, verdict.live, verdict.diff
    if wanted is None or (verdict.rebuilt and verdict.layout is None):
        return verdict
    extra = tuple(sorted(exposed))
    if live is not None and not verdict.changes and not extra:
        return replace(verdict, read=live.read)
    if wanted.table.kind == "landing":
        if verdict.conversion is not None:
            anew = storage.stored(wanted.table, None, None, None)
            return replace(verdict, read=anew.read, storage=anew)
        kept = storage.stored(wanted.table, live, region.table(verdict.name), diff, extra)
        made = replace(verdict, read=kept.read, exposed=extra, storage=kept)
        return replace(made, copied=_stored_copy(made, region)) if verdict.rebuilt else made
    assert live is not None
    assert diff is not None
    order = {column.name: at for at, column in enumerate(wanted.table.columns)}
    by_name = {pick.name: pick for pick in (*diff.picks, *verdict.picks)}
    picks = sorted(by_name.values(), key=lambda pick: order[pick.name])
    picks += [Pick(name=name, of=name) for name in extra]
    read = cache.by_value(compose, live.read, tuple(picks), verdict.states_read or wanted.read)
    return replace(verdict, read=read, exposed=extra)
