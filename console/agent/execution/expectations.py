"""Expectations in a rollout: the reason why a batch was not committed, and the checks of rebuilt tables at the gate."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from console.agent.expectations.at_gate import check_table, unknown
from console.agent.expectations.failing import failing_rows, stopped_batch
from console.agent.expectations.guard import row_checks, stops
from console.agent.feeds import backfill
from console.agent.recount.pinned_tables import Pinned, reason
from console.agent.rollout.context import RolloutContext
from console.errors import RegionError
from console.model.event import Checked
from console.model.slices import Slice
from console.model.step import CreateTable


def not_as_expected(
    context: RolloutContext, history: backfill.History, run: Sequence[Slice], session: Any
) -> RegionError:
    """Reread a batch that was not committed: the number of failing rows, their days, and the first keys.

    raises  RolloutStopped
    """
    with context.jobs(session, f"unexpected rows of {history.step.id}"):
        rows = backfill.target_rows(session, history, run)
        failing = tuple(failing_rows(rows, stops(row_checks(history.target)), history.target.table.time))
    return stopped_batch(history.step.target, backfill.label(run), failing)


def checks(context: RolloutContext, session: Any, pins: Mapping[str, int]) -> Iterator[Checked]:
    """A check for each expectation of the tables that the plan rebuilds.

    pins    version path → Delta version: one landing position of all feeds
    raises  RolloutStopped
    """
    rebuilt = {step.table for step in context.plan.steps if isinstance(step, CreateTable)}
    for state in context.plan.release.tables:
        if state.table.name not in rebuilt or not state.checks:
            continue
        path = context.path(state.version.path)
        if path not in pins:
            yield from unknown(state, "a feed has stopped")
            continue
        with context.jobs(session, f"expectations of {state.table.name}"):
            try:
                yield from check_table(Pinned(state, path, pins[path]).rows(session), state, time.time())
            except Exception as error:
                context.check_halt()
                yield from unknown(state, reason(error))
