"""A new version computed from its sources: always possible, and therefore the last route that is tried."""

from dataclasses import replace

from console.planning.cache.releases import shared_release
from console.planning.reuse import live_feeds
from console.planning.reuse.states import Parts, parts, saves
from console.planning.routes import forward, of_states
from console.planning.routes.change import Change
from console.planning.routes.reasons import computed, laid, listed
from console.planning.routes.verdict import LiveCopy, Recomputation, Verdict


def verdict(change: Change) -> Verdict:
    if change.rebuilt_sources:
        return _below_rebuilt(change)
    if change.readable:
        if not change.relaid:
            return replace(_whole(change, change.feeds.broken), remedy=of_states.remedy(change))
        why = f"{laid(change)}; partial states are recomputed"
        return replace(_whole(change, why), problems=change.unused_for_layout(), remedy=of_states.remedy(change))
    why = computed(change, change.proof.missing)
    if (apart := _parts(change)) is not None:
        why = f"{why} for {'it' if len(apart.columns) == 1 else 'them'} alone, the other states are copied"
    made = replace(
        _whole(change, why), problems=forward.refused(change), filters=_filters(change), remedy=of_states.remedy(change)
    )
    if apart is None:
        return made
    copied, recomputed = LiveCopy(apart.copied, states=True), Recomputation(queries=dict(apart.replayed))
    return replace(made, copied=copied, recomputed=recomputed)


def _whole(change: Change, why: str) -> Verdict:
    return Verdict(
        name=change.name, action="replay", why=why, wanted=change.wanted, live=change.live, diff=change.diff,
        columns=change.diff.columns, recomputed=Recomputation(),
    )  # fmt: skip


def _below_rebuilt(change: Change) -> Verdict:
    sources = listed(change.rebuilt_sources)
    own = "its own values are unchanged" if change.readable else computed(change, {})
    unused = f"its source {sources} is rebuilt, and positions in the old one say nothing about the new"
    made = _whole(change, f"{sources} is rebuilt and {change.name} is fed from its log; {own}")
    return replace(made, problems=change.unused_forward_query(unused), remedy=of_states.remedy(change))


def _filters(change: Change) -> tuple[str, ...]:
    """Materializations with the same rows as before, except for new filters."""
    if change.diff.rows:
        return ()
    now = live_feeds.as_wanted(change.desired, live_feeds.of(change.wanted.feeds))
    return live_feeds.narrowed(change.wanted, shared_release(change.release, change.cache), now, change.cache)


def _parts(change: Change) -> Parts | None:
    """Kept and computed states of an aggregate, if copying the kept ones reads less."""
    apart = parts(change.wanted, change.live, change.release.feeds_into(change.name), change.diff)
    if apart is None or not saves(apart, change.wanted, change.region, change.desired.tables, change.cache):
        return None
    return apart
