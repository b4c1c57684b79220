"""Quarantine of history rows whose values do not convert: counted, recorded by their keys, and left out up to a budget.

A batch continues without them and notes their number in its commit. Fence, slices and predicate determine which rows
were left out, so they are written to `_console/<pipeline>/quarantine` once, after the commit: after a death in between,
the next agent finds the commit, evaluates the same predicate over the same rows, and writes what is missing.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table

from console import crash
from console.agent.failure import Kind
from console.agent.feeds import backfill
from console.agent.rollout.context import RolloutContext
from console.agent.rows.key_texts import EXAMPLES, key_texts
from console.agent.store import commits
from console.agent.store.ledger import open_table, plain_id, select_rows, sql_text
from console.errors import RegionError
from console.model.event import BatchDone
from console.model.receipt import LEDGER
from console.model.slices import Slice

_KINDS = {"string": DataType.utf8(), "bigint": DataType.int64(), "double": DataType.float64()}
_COLUMNS = {name: _KINDS[kind] for name, kind in LEDGER["quarantine"].items()}


@dataclass(frozen=True, slots=True)
class FailingRows:
    """The number of rows of a run that do not convert, and the keys of the first ones."""

    rows: int
    keys: tuple[str, ...] = ()


def count_failing(
    context: RolloutContext, session: Any, history: backfill.History, run: Sequence[Slice], examples: int = EXAMPLES
) -> FailingRows:
    """Count the rows of a run of slices that do not convert; 0 if the plan has no predicate for them.

    examples  maximum number of keys
    """
    fragile = history.step.fragile
    if fragile is None or not run:
        return FailingRows(0)
    bad = backfill.source_rows(session, history, run).where(fragile.predicate)
    with context.jobs(session, f"what does not convert in {history.step.id}"):
        rows = int(bad.count())
        keys = key_texts(bad, fragile.keys, examples) if rows else ()
    return FailingRows(rows, keys)


def budget_left(context: RolloutContext) -> int:
    """Rows that this rollout may still put into quarantine."""
    return context.plan.quarantine_rows - sum(done.quarantined for done in context.recorder.events(BatchDone))


def over_budget(
    context: RolloutContext,
    history: backfill.History,
    run: Sequence[Slice],
    failing: FailingRows,
    *,
    cause: str,
    what: Kind,
) -> RegionError:
    """The C301 that fails the rollout: the number of rows that do not convert, their first keys, and the remedy."""
    rows, days, target = failing.rows, backfill.label(run), history.step.target
    allowed = context.plan.quarantine_rows
    budget = (
        f", and {budget_left(context)} of the {allowed} that policy.quarantine_rows allows are left" if allowed else ""
    )
    some = f"{'the first ' if rows > len(failing.keys) else ''}{'; '.join(failing.keys)}"
    message = (
        f"{target}: {rows:,} {'row does' if rows == 1 else 'rows do'} not convert in {days}{budget}: {cause}; at {some}"
    )
    used = allowed - budget_left(context)
    do = "leave such rows out" if what == "day" else "use try_cast with a default"
    hint = (
        f"{do} in {history.step.query_name}; or correct the rows, then console retry;"
        f" or set policy.quarantine_rows to {used + rows} or more to continue without them, discard and apply again"
    )
    return RegionError(message, hint=hint, code="C301")


class Quarantine:
    """One pipeline's quarantine table: keys and reasons, no values."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "quarantine"  # beside `releases` and `rollouts`

    def rows(self, rollout: str) -> list[dict[str, Any]]:
        """The rows of one rollout, as in `model.receipt.LEDGER`."""
        table = open_table(self.path)
        return [] if table is None else select_rows(table, f"SELECT * FROM t WHERE rollout = '{plain_id(rollout)}'")

    def copies(self) -> set[tuple[str, str]]:
        """(rollout, table) of each version that lacks rows of the one it was copied from."""
        table = open_table(self.path)
        rows = (
            [] if table is None else select_rows(table, "SELECT DISTINCT rollout, target FROM t WHERE source = target")
        )
        return {(row["rollout"], row["target"]) for row in rows}

    def record(self, context: RolloutContext, session: Any, history: backfill.History, run: Sequence[Slice]) -> None:
        """Write the rows that a committed batch left out, unless they are recorded already."""
        rollout, step, position = context.recorder.rollout, history.step, run[-1].index
        if any((row["step"], row["position"]) == (step.id, position) for row in self.rows(rollout)):
            return
        failing = count_failing(context, session, history, run, max(budget_left(context), 0) + 1)
        same = {
            "rollout": rollout, "step": step.id, "target": step.target, "source": step.source, "fence": history.fence,
            "position": position, "slices": backfill.label(run), "reason": "does not convert", "at": time.time(),
        }  # fmt: skip
        columns = {
            name: Array([same.get(name)] * len(failing.keys), kind) for name, kind in _COLUMNS.items() if name in same
        }
        columns["key"] = Array(list(failing.keys), _COLUMNS["key"])
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        crash.point("before-quarantine")
        commits.append(str(self.path), Table.from_pydict({name: columns[name] for name in _COLUMNS}))
        crash.point("after-quarantine")

    def forget(self, rollout: str) -> None:
        """Delete the rows of a sandbox that is dropped: they would count as those of the next one of its name. The rows of a
        rollout stay: they tell for ever what its release lacks."""
        if not self.rows(rollout):
            return
        which = f"rollout = {sql_text(rollout)}"
        commits.commit(str(self.path), lambda table, properties: table.delete(which, commit_properties=properties))


def of_pipeline(context: RolloutContext) -> Quarantine:
    return Quarantine(context.warehouse / "_console" / context.plan.pipeline)
