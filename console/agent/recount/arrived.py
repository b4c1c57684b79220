"""Recomputation of the live commits that arrived since an earlier one: all of them, where their rows fit, and no sample."""

from dataclasses import replace
from typing import Any

from console.agent.recount import sample as samples
from console.agent.recount.live import PinnedFeed, RecountResult, computed

APART = 16  # commits that are computed one by one: each is a query of its own


def recount_arrived(session: Any, pinned: PinnedFeed, after: int) -> RecountResult | None:
    """Recompute the newest live commits of a feed; None if none has arrived.

    Rows of one source, each for itself, are computed by one query for many commits. A difference counts only if the
    commits differ by themselves: a query may give other rows for several ranges than for each.

    after  version of the target
    """
    commits = samples.live_commits(pinned.target.path, pinned.app_id, after)
    if not commits:
        return None
    if _row_by_row(pinned):
        chosen = samples.newest(commits, len(commits))
        result = computed(session, pinned, chosen, samples.together)
        for at in range(0, len(chosen), APART) if result.ok is False else ():
            result = computed(session, pinned, chosen[at : at + APART], tuple)
            if result.ok is not True:
                break
    else:
        result = computed(session, pinned, samples.newest(commits, APART), tuple)
    return replace(result, moved_rows=sum(commit.rows for commit in commits), last=commits[-1].version)


def _row_by_row(pinned: PinnedFeed) -> bool:
    """Whether the rows of several ranges are those of each range, joined with nothing and not merged."""
    state = pinned.target.state
    return state.table.kind == "append" and state.newest is None and not pinned.joined
