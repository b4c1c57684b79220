"""Parts of the reasons that several routes give."""

from collections.abc import Mapping, Sequence
from typing import Literal

from console.planning.routes.change import Change


def computed(change: Change, missing: Mapping[str, str]) -> str:
    """Why history is re-read. missing: column → the column of a source that it lacks"""
    wanted, live, diff = change.wanted, change.live, change.diff
    name, sources = wanted.table.name, listed(sorted({feed.source for feed in wanted.feeds}))
    if wanted.table.kind != live.table.kind:
        return f"{name} is now of kind {wanted.table.kind}: it is computed anew from {sources}"
    if not diff.rows:
        return f"which rows {name} holds changes (FROM, WHERE, JOIN or GROUP BY): history is re-read from {sources}"
    fresh = [column for column, why in diff.computed.items() if why.kind == "new"]
    others = [why.text for column, why in diff.computed.items() if column not in fresh]
    parts = []
    if fresh:
        origin = sorted({f"{t}.{c}" for column in fresh for t, c in wanted.reads.get(column, frozenset())})
        lacking = sorted({missing[column] for column in fresh if "." in missing.get(column, "")})
        kept = f", which {name} does not keep" if origin else ""
        if lacking and set(lacking) < set(origin):
            kept = f", of which {name} does not keep {listed(lacking)}"
        verb = "is new and" if len(fresh) == 1 else "are new and"
        parts.append(f"{listed(fresh)} {verb} computed from {listed(origin) or sources}{kept}")
    parts += others
    return f"{'; '.join(parts)}: history is re-read from {sources}"


def computable(columns: Sequence[str], name: str) -> str:
    return f"{listed(columns)} {are(columns)} proven to be computable from columns that {name} keeps"


def laid(change: Change) -> str:
    """`clustered by ip instead of not at all`"""
    new, old = change.wanted.table, change.live.table
    how, now, was = "partitioned", new.partition_by, old.partition_by
    if change.diff.layout:
        how, now, was = "clustered", new.cluster_by, old.cluster_by
    to = f"{how} by {listed(now)}" if now else f"no longer {how}"
    return f"{to} instead of {f'by {listed(was)}' if was else 'not at all'}"


def are(names: Sequence[str]) -> Literal["is", "are"]:
    return "is" if len(names) == 1 else "are"


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
