"""The plan's change of every node as shown to the operator: tables, endpoints, copies and sinks."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Literal

from console.model.live import Live
from console.model.pipeline import Copy, Endpoint, Sink
from console.model.plan import Action, NodeChange
from console.model.region import Limits
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.derived.options import options
from console.planning.derived.prices import price
from console.planning.fingerprint import Desired
from console.planning.routes.verdict import Verdict, Verdicts

_KEPT = Memo[NodeChange](100_000)
EndKind = Literal["endpoint", "copy", "sink"]


def nodes(
    desired: Desired, verdicts: Verdicts, live: Live, limits: Limits,
    *, cache: PlannerCache, allowed: Collection[str] = (),
) -> tuple[NodeChange, ...]:  # fmt: skip
    """Every node with its action, tables first in the order in which rows flow. allowed: as of `build.plan`"""

    def changed(verdict: Verdict) -> NodeChange:
        return NodeChange(
            kind="table", name=verdict.name, action=verdict.action, why=verdict.why, columns=verdict.columns, price=price(verdict, verdicts, live, limits, cache),
            source=_read_from(verdict), history=verdict.history, older_rows=verdict.older_rows, older_until=verdict.older_until,
            options=options(verdict, desired, verdicts, live, limits, cache=cache, allowed=allowed),
        )  # fmt: skip

    tables = [
        # regions with one release share the verdicts of what is kept, and nothing of a region is in these changes
        cache.by_identity(_KEPT, partial(changed, verdict), verdict) if _costs_nothing(verdict) else changed(verdict)
        for verdict in verdicts.tables.values()
    ]
    before = live.release
    return (
        *tables,
        *_ends("endpoint", desired.endpoints, before.endpoints if before else ()),
        *_ends("copy", desired.copies, before.copies if before else ()),
        *_ends("sink", desired.sinks, before.sinks if before else ()),
    )


def _costs_nothing(verdict: Verdict) -> bool:
    return verdict.action == "keep" and not verdict.rebuilt and not verdict.alternatives


def _read_from(verdict: Verdict) -> str:
    if not verdict.rebuilt or verdict.wanted is None:
        return ""
    return verdict.name if verdict.recomputed is None else verdict.wanted.feeds[0].source


def _ends(
    kind: EndKind, wanted: tuple[Endpoint | Copy | Sink, ...], live: tuple[Endpoint | Copy | Sink, ...]
) -> list[NodeChange]:
    changes: list[NodeChange] = []
    before = {node.name: node for node in live}
    for node in wanted:
        old = before.get(node.name)
        if old is None:
            changes.append(_end(kind, node.name, "create", "new"))
        elif node == old or node == replace(old, where=""):
            changes.append(_end(kind, node.name, "keep", "unchanged"))
        else:
            what = "its query changed" if node.sql != old.sql else "its declaration changed"
            changes.append(_end(kind, node.name, "metadata", f"{what}: no row moves"))
    removed = [name for name in before if name not in {node.name for node in wanted}]
    return changes + [_end(kind, name, "drop", "no longer declared") for name in removed]


def _end(kind: EndKind, name: str, action: Action, why: str) -> NodeChange:
    return NodeChange(kind=kind, name=name, action=action, why=why)
