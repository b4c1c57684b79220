"""Recorded calls that validation runs against both releases: those whose answers a change may affect."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from console.model.live import Live, Release, TableState
from console.model.newest import Newest
from console.model.pipeline import Endpoint, Parameter, Pipeline
from console.model.plan import Plan
from console.model.recorded_call import AnswerForm, CallQuery, PlannedCall, RecordedCall
from console.model.schema import types
from console.model.step import Step, Validate
from console.planning.sql.answer import answer_form, answer_order, marked
from console.planning.sql.compile import reads
from console.planning.sql.relation import physical
from console.planning.sql.tree import Text


def with_calls(plan: Plan, pipeline: Pipeline, live: Live) -> Plan:
    """The plan with the calls that its validation runs; one that builds no table is validated for them alone.

    live  the region as it is called now
    """
    if not plan.steps or live.release is None or not (calls := _calls(plan, pipeline, live.release)):
        return plan
    *made, last = (step for step in plan.steps if not isinstance(step, Validate))
    comparisons = tuple(each for step in plan.steps if isinstance(step, Validate) for each in step.comparisons)
    return replace(plan, steps=(*made, Validate(comparisons, calls), last))


def _calls(plan: Plan, pipeline: Pipeline, live: Release) -> tuple[PlannedCall, ...]:
    """The calls of endpoints that are edited, or that read a table with a new version or a changed read."""
    old = {endpoint.name: endpoint for endpoint in live.endpoints}
    new = {endpoint.name: endpoint for endpoint in plan.release.endpoints}
    why = {answer.name: answer.why for answer in plan.answers if answer.kind == "endpoint"}
    joined = _joined_again(plan.steps)
    planned: list[PlannedCall] = []
    for call in pipeline.calls:
        endpoint, was = new.get(call.endpoint), old.get(call.endpoint)
        tables = reads(Text(sql=endpoint.sql)) if endpoint is not None else ()
        if endpoint is not None and (why.get(endpoint.name) or _reached(tables, plan.release, live)):
            planned.append(_planned(call, endpoint, was, plan.release, why.get(endpoint.name, ""), joined))
    return tuple(planned)


def _joined_again(made: Sequence[Step]) -> frozenset[str]:
    """Tables whose history is joined with the current contents of other tables."""
    validated = (each for step in made if isinstance(step, Validate) for each in step.comparisons)
    return frozenset(each.table for each in validated if each.joins)


def _reached(tables: Sequence[str], release: Release, live: Release) -> bool:
    """Whether one of these tables has another version or a changed read."""
    for name in tables:
        state, before = release.table(name), live.table(name)
        if (state is None) != (before is None):
            return True
        if state is not None and before is not None and _shown(state) != _shown(before):
            return True
    return False


def _shown(state: TableState) -> tuple[str, str, Newest | None]:
    return state.version.path, state.read, state.newest


def _planned(
    call: RecordedCall, endpoint: Endpoint, was: Endpoint | None, release: Release, why: str, joined: frozenset[str]
) -> PlannedCall:
    tables = reads(Text(sql=endpoint.sql))
    exact, inexact = {}, {}
    for state in (release.table(name) for name in tables):
        if state is not None:
            columns = types(state.table.columns)
            exact[state.table.name] = physical(state.table.name, "", dict.fromkeys(columns, ""))
            names = frozenset(name.lower() for name in state.inexact)
            inexact[state.table.name] = marked(exact[state.table.name], names)
    form = answer_form(endpoint.sql, exact, inexact) if len(exact) == len(tables) else AnswerForm()
    if again := joined.intersection(tables):
        form = replace(form, doubt=f"history of {', '.join(sorted(again))} was joined with tables as they are now")
    new = _query(endpoint.sql, endpoint.parameters, dict(call.parameters))
    assert new is not None, "a call that lacks a parameter is refused when its file is read"
    return PlannedCall(
        endpoint=call.endpoint,
        name=call.name,
        new=new,
        live=_query(was.sql, was.parameters, dict(call.parameters)) if was is not None else None,
        form=form if was is None else replace(form, order=answer_order(was.sql)),
        changed=why,
        differs=call.differs,
        budget=call.budget,
    )


def _query(sql: str, parameters: Sequence[Parameter], given: Mapping[str, str]) -> CallQuery | None:
    """The call for one release; None if it lacks a parameter without a default there."""
    args = []
    for parameter in parameters:
        value = given.get(parameter.name, parameter.default)
        if value is None:
            return None
        args.append((parameter.name, value, parameter.type))
    return CallQuery(sql, reads(Text(sql=sql)), tuple(args))
