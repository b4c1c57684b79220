"""Why a table takes its route, in one sentence each."""

from collections.abc import Mapping, Sequence
from typing import Literal

from console.model.live import TableState
from console.planning.desired import Wanted
from console.planning.diff import Diff


def computed(wanted: Wanted, live: TableState, diff: Diff, missing: Mapping[str, str]) -> str:
    """Why history is re-read. missing: column → the column of a source that it lacks"""
    name, sources = wanted.table.name, listed(sorted({feed.source for feed in wanted.feeds}))
    if wanted.table.kind != live.table.kind:
        return f"{name} is now of kind {wanted.table.kind}: it is computed anew from {sources}"
    if not diff.rows:
        return f"which rows {name} holds changes (FROM, WHERE, JOIN or GROUP BY): history is re-read from {sources}"
    fresh = [column for column, why in diff.computed.items() if why.kind == "new"]
    others = [why.said for column, why in diff.computed.items() if column not in fresh]
    said = []
    if fresh:
        origin = sorted({f"{t}.{c}" for column in fresh for t, c in wanted.reads.get(column, frozenset())})
        lacking = sorted({missing[column] for column in fresh if "." in missing.get(column, "")})
        kept = f", which {name} does not keep" if origin else ""
        if lacking and set(lacking) < set(origin):
            kept = f", of which {name} does not keep {listed(lacking)}"
        verb = "is new and" if len(fresh) == 1 else "are new and"
        said.append(f"{listed(fresh)} {verb} computed from {listed(origin) or sources}{kept}")
    said += others
    return f"{'; '.join(said)}: history is re-read from {sources}"


def metadata(diff: Diff) -> str:
    said = [f"{c.was} becomes {c.column}" for c in diff.columns if c.change == "renamed"]
    said += [f"{c.column} widens from {c.was}" for c in diff.columns if c.change == "type"]
    if constant := [pick.name for pick in diff.picks if pick.literal]:
        said.append(f"{listed(constant)} {be(constant)} constant and supplied at read")
    if diff.hidden:
        said.append(f"{listed(diff.hidden)} {be(diff.hidden)} hidden, not erased")
    return f"{', '.join([*said, *diff.settings])}: no row moves"


def rebound(name: str, sources: Sequence[str]) -> str:
    """Why a table stays where it is although what it is fed from gets a new version."""
    its = "its feed moves" if len(sources) == 1 else "its feeds move"
    return (
        f"{listed(sources)} {be(sources)} rebuilt, and what {name} reads of {'it' if len(sources) == 1 else 'them'} is"
        f" unchanged: {its} across at promotion, at the same landing position; no row moves"
    )


def laid(how: str, now: Sequence[str], was: Sequence[str]) -> str:
    """`clustered by ip instead of not at all`"""
    to = f"{how} by {listed(now)}" if now else f"no longer {how}"
    return f"{to} instead of {f'by {listed(was)}' if was else 'not at all'}"


def be(names: Sequence[str]) -> Literal["is", "are"]:
    return "is" if len(names) == 1 else "are"


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
