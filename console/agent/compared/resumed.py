"""Begins or resumes a rollout's comparison: after a kill, the next agent continues with the same Delta versions."""

import time
from dataclasses import replace
from typing import Any

from console.agent.compared.quarantined import left_out_rows
from console.agent.compared.records import RESUMED_SECONDS, records_of
from console.agent.compared.round import ComparisonRound, portions
from console.agent.recount.pinned_tables import Pinned
from console.agent.rollout.context import RolloutContext
from console.model.live import TableState
from console.model.step import Comparison


def begin(
    context: RolloutContext, session: Any, plan: Comparison, old: Pinned, new: Pinned
) -> tuple[ComparisonRound, Pinned, Pinned]:
    """The portions and records of a table's comparison, and its Delta versions: those with which a killed agent began,
    since its records hold only for these.
    """
    records, rollout = records_of(context.warehouse, context.plan.pipeline), context.recorder.rollout
    done = records.newest(rollout, plan.table)
    if done and not plan.keys and time.time() - max(record.at for record in done) < RESUMED_SECONDS:
        old, new = replace(old, version=done[0].old_version), replace(new, version=done[0].new_version)
    same = tuple(r for r in done if (r.old_version, r.new_version) == (old.version, new.version))
    comparison = ComparisonRound(
        portions=portions(
            context.stats(plan.table, new.path, stored_time(new.state, plan.time), new.version).days,
            context.plan.rows_limit,  # tuned limits may differ after a restart
        )
        if plan.time and not plan.keys
        else ComparisonRound().portions,
        done=same,
        store=lambda record: records.append(rollout, record),
        left_out=left_out_rows(context, session, plan.table),
    )
    return comparison, old, new


def stored_time(state: TableState, time_column: str) -> str:
    """The stored column whose file statistics determine the days; "" for none."""
    stored = {column.name for column in state.version.columns}
    name = state.stored_in(time_column)[0]
    return name if name in stored else ""
