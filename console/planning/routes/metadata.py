"""The release changes and the table does not: its stored rows serve the wanted declaration, with a changed read or
description."""

from console.errors import Problem
from console.planning.diff import Diff
from console.planning.landing.forward_query import continued
from console.planning.landing.problems import landing_problems
from console.planning.routes.change import Change
from console.planning.routes.reasons import are, listed
from console.planning.routes.verdict import Verdict
from console.remedy import DropKey


def verdict(change: Change) -> Verdict | None:
    """Taken if the live version stays; tried after `keep`, so something about the table differs."""
    wanted, diff = change.wanted, change.diff
    if not change.stays:
        return None
    if change.is_landing:
        return Verdict(
            name=change.name, action="metadata", why=_landing_reason(change), wanted=wanted, live=change.live, diff=diff,
            columns=diff.columns, problems=of_landing(change),
        )  # fmt: skip
    return Verdict(
        name=change.name, action="metadata", why=reason(diff), wanted=wanted, live=change.live, diff=diff,
        columns=diff.columns, needs=change.feeds.needs, picks=change.reread or (), states_read=change.states_read,
        problems=change.unused_forward_query("nothing of it has to be computed"),
    )  # fmt: skip


def reason(diff: Diff) -> str:
    narrowed = {pick.name for pick in diff.picks if pick.fresh} | diff.computed.keys()
    parts = [f"{c.was} becomes {c.column}" for c in diff.columns if c.change == "renamed"]
    for column in (column for column in diff.columns if column.change == "type"):
        parts.append(f"{column.column} {'changes' if column.column in narrowed else 'widens'} from {column.was}")
    if constant := [pick.name for pick in diff.picks if pick.literal]:
        parts.append(f"{listed(constant)} {are(constant)} constant and supplied at read")
    if computed := list(diff.computed):
        parts.append(f"{listed(computed)} {are(computed)} read in a new way from the states that are kept")
    if diff.hidden:
        parts.append(f"{listed(diff.hidden)} {are(diff.hidden)} hidden, not erased")
    return f"{', '.join([*parts, *diff.settings])}: no row moves"


def of_landing(change: Change) -> tuple[Problem, ...]:
    """The parts of a landing table's declaration that cannot be fulfilled or have no effect, its forward query included."""
    diff, problems = change.diff, landing_problems(change.wanted.table, change.live, change.region, change.diff)
    continuation = continued(change.wanted.table, change.live)
    used = bool(continuation.computed or continuation.converted) or any(
        column.change in ("renamed", "type") for column in diff.columns
    )
    unused = () if used or problems else change.unused_forward_query("no column of it is renamed or of another type")
    return (*problems, *unused, *_unused_backward_query(change))


def _unused_backward_query(change: Change) -> tuple[Problem, ...]:
    """C109 if it is left over from the live release, C108 if it never had an effect."""
    table = change.wanted.table
    if not table.backward_query or change.conversion is not None:
        return ()
    over = table.backward_query == change.live.table.backward_query
    says = "is left over from the release that is live" if over else "is not used: no value of it is converted"
    remedies = (DropKey(node=table.name, key="backward_query"),)
    return (
        Problem(
            code="C109" if over else "C108", message=f"backward_query of {table.name} {says}", where=table.where,
            severity="warn", node=table.name, remedies=remedies,
        ),
    )  # fmt: skip


def _landing_reason(change: Change) -> str:
    return f"{', '.join(landing_changes(change)) or 'declaration'}: no row moves"


def landing_changes(change: Change) -> list[str]:
    """Changes of a landing table's declaration, except its layout."""
    diff = change.diff
    parts = [f"{c.was} becomes {c.column}" for c in diff.columns if c.change == "renamed"]
    parts += [f"{pick.name} widens to {pick.type}, in a second column" for pick in diff.picks if pick.type]
    parts += [f"{listed(diff.hidden)} no longer read"] if diff.hidden else []
    if computed := list(continued(change.wanted.table, change.live).computed):
        parts.append(
            f"{listed(computed)} {are(computed)} computed at read where lines do not give {'it' if len(computed) == 1 else 'them'}"
        )
    if added := [
        column
        for column, why in diff.computed.items()
        if why.kind == "new" and column not in {*computed, *continued(change.wanted.table, change.live).converted}
    ]:
        parts.append(f"{listed(added)} added")
    return [*parts, *diff.settings]
