"""The query that a region's policy asks after a promotion: compiled over the release that will be live then."""

from dataclasses import replace

from console.errors import Problem, Problems
from console.model.plan import Plan
from console.model.region import Region
from console.planning.queries import compile_query
from console.remedy import Edit


def with_watch_query(plan: Plan, region: Region) -> Plan:
    """The plan with `policy.watch_query`, or with the problem C124 if it cannot be asked. Without a watch, and where nothing
    is rolled out, nobody asks it.
    """
    query = region.policy.watch_query
    if not query or not region.policy.watch_seconds or not plan.steps:
        return plan
    try:
        compiled = compile_query(query, plan.release)
        if len(compiled.columns) == 1:
            rules = replace(plan.gate, watch_query=compiled.sql, watch_tables=compiled.tables)
            return replace(plan, gate=rules)
        reason = f"it has {len(compiled.columns)} columns"
    except Problems as problems:
        reason = "; ".join(f"{problem.message} [{problem.code}]" for problem in problems.problems)
    how = "one SELECT of one column that is true or false, over the tables of the pipeline"
    message = f"policy.watch_query of {region.name} cannot be asked: {reason}"
    remedies = (Edit(node=region.name, how=how),)
    problem = Problem(code="C124", message=message, where=region.where, remedies=remedies)
    return replace(plan, problems=(*plan.problems, problem))
