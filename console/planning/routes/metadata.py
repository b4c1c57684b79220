"""The release changes and the table does not: its stored rows give all that is wanted, read or described otherwise."""

from console.planning.diff import Diff
from console.planning.routes.change import Change
from console.planning.routes.reasons import are, listed
from console.planning.routes.verdict import Verdict


def verdict(change: Change) -> Verdict | None:
    """After `keep`: something of it differs."""
    wanted, diff = change.wanted, change.diff
    if not change.stays:
        return None
    if change.is_landing:
        return Verdict(
            name=change.name, action="metadata", why=_landing_reason(change), wanted=wanted, live=change.live, diff=diff,
            columns=diff.columns,
        )  # fmt: skip
    return Verdict(
        name=change.name, action="metadata", why=reason(diff), wanted=wanted, live=change.live, diff=diff,
        columns=diff.columns, needs=change.feeds.needs,
        problems=change.unused_forward_query("nothing of it has to be computed"),
    )  # fmt: skip


def reason(diff: Diff) -> str:
    parts = [f"{c.was} becomes {c.column}" for c in diff.columns if c.change == "renamed"]
    parts += [f"{c.column} widens from {c.was}" for c in diff.columns if c.change == "type"]
    if constant := [pick.name for pick in diff.picks if pick.literal]:
        parts.append(f"{listed(constant)} {are(constant)} constant and supplied at read")
    if diff.hidden:
        parts.append(f"{listed(diff.hidden)} {are(diff.hidden)} hidden, not erased")
    return f"{', '.join([*parts, *diff.settings])}: no row moves"


def _landing_reason(change: Change) -> str:
    diff = change.diff
    parts = [f"{listed(diff.hidden)} no longer read"] if diff.hidden else []
    if added := [column.name for column in change.wanted.table.columns if column.name in diff.computed]:
        parts.append(f"{listed(added)} added")
    return f"{', '.join([*parts, *diff.settings]) or 'declaration'}: no row moves"
