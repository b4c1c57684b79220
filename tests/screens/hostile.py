"""A console whose every outside text attacks the terminal: `python -m tests.screens.hostile`."""

import time
from dataclasses import replace

from console.drivers.replay import Given, Ran
from console.errors import Conflict, Problem
from console.model.event import Checked
from console.model.plan import Drift
from console.tui import run
from console.witness import NoWitness, Witness, WitnessProgress, WitnessResult
from tests.screens import scripted as s

ATTACKS = (
    "\x1b]52;c;aGVsbG8=\x07", "\x1b]0;owned\x07", "\x1b]8;;http://evil\x1b\\link", "\x1b[2J\x1b[H", "\x1bPq#0\x1b\\", "\x9b31m",
    "\x1b]unterminated", "a\rb", "\u202egnp.exe", "z\u200bw", "nul\x00", "[red]x[/]", "[/]", "[b", "[@click=app.quit]x[/]",
    "[link=http://evil]y[/link]", "\ud800", "\x85\u2028",
)  # fmt: skip
ALL = "".join(ATTACKS)


def views() -> tuple[s.RegionView, ...]:
    """Names, reasons, log lines, checks, problems, hints: everything that comes from outside."""
    region = replace(s.US, name=f"us{ALL}", environment=ALL, owner=ALL, zone=ALL)
    gate = s.at_gate(region)
    checks = (
        Checked(table=ALL, check=ALL, ok=False, detail=ALL),
        Checked(table=ALL, check=ALL, ok=None, detail=ALL),
        Checked(table=ALL, check=ALL, ok=True, detail=ALL),
    )
    steps = tuple(replace(step, id=ALL, batch=ALL, state="running") for step in gate.status.steps)
    status = replace(
        gate.status, checks=checks, steps=steps, log=(*ATTACKS, "m" * 1_000_000), why=ALL, hint=ALL, by=ALL,
        release=ALL, was=ALL, plan=ALL, decided_by=ALL,
    )  # fmt: skip
    assert gate.plan is not None
    problem = Problem(code="C101", message=ALL, where=ALL, hint=ALL)
    nodes = tuple(replace(node, name=ALL, why=ALL, source=ALL) for node in gate.plan.nodes)
    plan = replace(gate.plan, problems=(problem,), nodes=nodes)
    plan = replace(plan, drift=(Drift(table=ALL, what="column", name=ALL, said=ALL, found=ALL, adopt=ALL, repair=ALL),))
    shut = replace(
        gate,
        status=status,
        plan=plan,
        problem=ALL,
        note=ALL,
        live=ALL,
        previous=ALL,
        witness=witness(),
        heard=time.time() + 3600.0,
    )
    broken = replace(s.failed(replace(s.EU, name=f"eu{ALL}")), link_why=ALL, link="unreachable", plan=plan)
    noted = replace(s.RegionView(region=replace(s.AP, name=f"ap{ALL}")), note=ALL, problem=ALL)
    return shut, broken, noted


def witness() -> WitnessProgress:
    """Names of tables and columns, values, and errors of Spark."""
    given = Given(((ALL, "string"), (f"{ALL}2", "string")), ((ALL, None), ("m" * 1_000_000, ALL)))
    rows = Ran((ALL,), ((ALL,),))
    answers = (rows, Ran((f"{ALL}3",), ((ALL,),))), (rows, Ran((), (), ALL))
    results = tuple(WitnessResult(Witness({ALL: given}, old, new), 3) for old, new in answers)
    return WitnessProgress(((ALL, ALL),) * 3, (*results, WitnessResult(None, 0, ALL, NoWitness.UNAVAILABLE)), done=True)


def cockpit() -> s.ScriptedCockpit:
    """Every call fails with a hostile error."""
    made = s.ScriptedCockpit(*views())
    made.errors = {call: Conflict(ALL, hint=ALL, code=ALL) for call in ("refresh", "cancel", "promote")}
    return made


if __name__ == "__main__":
    raise SystemExit(run(cockpit(), title=ALL, coach=True))
