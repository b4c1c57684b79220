"""A comparison of a rollout, begun or continued: an agent that comes after a killed one goes on at the versions of that one."""

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
    """How a table is compared, and the versions. Both stay those that a killed agent has begun with: what it recorded
    is true of them, and of no others.
    """
    records, rollout = records_of(context.warehouse, context.plan.pipeline), context.recorder.rollout
    done = records.newest(rollout, plan.table)
    if done and not plan.keys and time.time() - max(record.at for record in done) < RESUMED_SECONDS:
        old, new = replace(old, version=done[0].old_version), replace(new, version=done[0].new_version)
    same = tuple(r for r in done if (r.old_version, r.new_version) == (old.version, new.version))
    comparison = ComparisonRound(
        portions=portions(
            context.stats(plan.table, new.path, _stored_time(new.state, plan.time), new.version).days,
            context.plan.rows_limit,  # tuned limits may be others when it is resumed
        )
        if plan.time and not plan.keys
        else ComparisonRound().portions,
        done=same,
        store=lambda record: records.append(rollout, record),
        left_out=left_out_rows(context, session, plan.table),
    )
    return comparison, old, new


def _stored_time(state: TableState, time_column: str) -> str:
    """The stored column whose file statistics give the days; "" where none does."""
    stored = {column.name for column in state.version.columns}
    name = state.stored_in(time_column)[0]
    return name if name in stored else ""
