"""A table keeps its version although its source gets a new one: its feed moves to the new source version at promotion."""

from collections.abc import Sequence

from console.planning.reuse import live_feeds
from console.planning.reuse.carried import reads_carried
from console.planning.routes import metadata
from console.planning.routes.change import Change
from console.planning.routes.reasons import are, listed
from console.planning.routes.verdict import Verdict


def verdict(change: Change) -> Verdict | None:
    """A rebind if the columns that its feeds read of the rebuilt sources are unchanged and repeatable."""
    diff, rebuilt = change.diff, change.rebuilt_sources
    if not rebuilt or not change.readable or not diff.layout:
        return None
    if live_feeds.unrepeatable(change.name, change.release, change.verdicts, change.cache) or change.feeds.broken:
        return None
    if _of_carried(change):
        return None
    also = "" if diff.plain and diff.readable and not diff.settings else f"; {metadata.reason(diff)}"
    return Verdict(
        name=change.name, action="rebind", why=f"{_reason(change, rebuilt)}{also}", wanted=change.wanted,
        live=change.live, diff=diff, columns=diff.columns, needs=change.feeds.needs, picks=change.reread or (),
        states_read=change.states_read,
        problems=change.unused_forward_query("nothing of it has to be computed"),
    )  # fmt: skip


def _of_carried(change: Change) -> bool:
    """Whether it was computed from carried rows of a source that are recomputed now."""
    computed = [name for name in change.rebuilt_sources if change.verdicts[name].recomputed is not None]
    sources = [state for name in computed if (state := change.release.table(name)) is not None]
    feeds = change.release.feeds_into(change.name)
    return any(reads_carried(feed, state, change.cache) for feed in feeds for state in sources)


def _reason(change: Change, sources: Sequence[str]) -> str:
    tables = [wanted.table for name in sources if (wanted := change.verdicts[name].wanted) is not None]
    adapters = [table for table in tables if table.source and change.verdicts[table.name].live is None]
    its = "its feed moves" if len(sources) == 1 else "its feeds move"
    rebuilt = f"{listed(sources)} {are(sources)} rebuilt"
    if len(adapters) == len(sources):
        rebuilt = " and ".join(f"{table.name} is put in front of {table.source}" for table in adapters)
    return (
        f"{rebuilt}, and the columns that {change.name} reads of {'it' if len(sources) == 1 else 'them'} are"
        f" unchanged: {its} at promotion, at the same landing position; no row moves"
    )
