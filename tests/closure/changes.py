"""docs/changes.md, written from the kinds of edits that are drawn: `python -m tests.closure.changes --write`."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from console.errors import Problem
from console.model.plan import ACTIONS, Plan
from console.model.step import Backfill
from console.planning import PlannerCache
from console.remedy import Flag, Remedy, SetKey
from tests.closure.edits import KINDS, Kind
from tests.closure.facts import Facts, deployed
from tests.closure.follow import Attempt, answer
from tests.closure.shapes import world_of

PAGE = Path(__file__).parents[2] / "docs" / "changes.md"
HEAD = """# Changes and their routes

Each kind of edit, by the kind of table and by the rows that its source still holds: the planner's route, and how many of the table's 800 rows are read again.
Generated from drawn edits by `python -m tests.closure.changes --write`; thousands of the same edits are drawn in `tests/closure`, and each has a plan that loses
nothing that the region still holds, or a refusal whose remedy leads to such a plan. Routes: [planner.md](planner.md); codes: [codes.md](codes.md). `history: carry` and
`since D`, `--allow-destructive` and `forward_query` are always the operator's explicit choice.
"""
TITLES = {
    "hits": "A table of rows, fed from a landing table",
    "named": "A table of rows, fed through a join",
    "both": "A table of rows, filled by two queries",
    "hourly": "An aggregate",
    "last": "A table with the newest row of each key (`kind: latest`)",
    "once": "A table without duplicate rows (`kind: distinct`)",
    "events": "A managed landing table",
    "people": "A foreign landing table",
    "raw": "A new adapter in front of it",
    "clean": "A live adapter",
    "": "Tables and endpoints",
}
STATES = {"holds every row": 0, "has lost its three oldest days": 3, "is empty": 8}
SOURCES = {
    "hits": "events",
    "named": "events",
    "both": "events",
    "hourly": "hits",
    "last": "events",
    "once": "events",
    "clean": "raw",
}


def page() -> str:
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    cache = PlannerCache()
    for table, title in TITLES.items():
        kinds = [kind for kind in KINDS if (kind.table if kind.table in TITLES and not _whole(kind) else "") == table]
        states = STATES if table in SOURCES else {"": 0}
        yield f"## {title}\n"
        if table in SOURCES:
            yield f"| change | its source {' | its source '.join(states)} |"
            yield f"| --- |{' --- |' * len(states)}"
        else:
            yield "| change | |\n| --- | --- |"
        for kind in kinds:
            cells = [_cell(kind, SOURCES.get(table, ""), lost, cache) for lost in states.values()]
            yield f"| {kind.name if table else kind} | {' | '.join(cells)} |"
        yield ""


def _whole(kind: Kind) -> bool:
    """An edit of the pipeline, not of one table's declaration."""
    return "table dropped" in kind.name


def _cell(kind: Kind, source: str, lost: int, cache: PlannerCache) -> str:
    facts = Facts(gone={source: lost} if lost else {})
    world = world_of(kind.table)
    made, refused = answer(Attempt(old=world, edits=(kind,)), deployed(world, facts, cache), cache)
    own = [problem for problem in refused if problem.node in (kind.table, kind.node, f"feed_{kind.table}")] or list(
        refused
    )
    if own:
        return _refused(own[0])
    assert made is not None
    return _planned(made, kind.node or kind.table)


def _planned(plan: Plan, table: str) -> str:
    node = next(node for node in plan.nodes if node.name == table)
    backfills = [step for step in plan.steps if isinstance(step, Backfill) and step.target == table]
    rows = sum(step.rows for step in backfills)
    moved = f", {rows:,} rows" if rows else ", 0 bytes" if ACTIONS[node.action].changes else ""
    since = next((f"; computed from {step.since} on" for step in backfills if step.since), "")
    return f"`{node.action}`{moved}{since}"


def _refused(problem: Problem) -> str:
    return f"{problem.code}: {'; or '.join(map(_short, problem.remedies))}".replace("|", "\\|")


def _short(remedy: Remedy) -> str:
    match remedy:
        case SetKey():
            return str(replace(remedy, effect=""))
        case Flag(flag=flag):
            return f"`{flag}`"
    return str(remedy)


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page(), end="")
