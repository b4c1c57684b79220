"""What people declare at a gate, and a gate that opens by itself, across restarts of the agent. Real release tables, no Java."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from console import crash
from console.agent.pipeline import PipelineController
from console.agent.rollout.declared import declare
from console.agent.rollout.self_opening import SelfOpeningGate, due
from console.agent.service import Service
from console.agent.settings import Settings
from console.errors import CheckFailed, Conflict, ConsoleError, DataError
from console.model import codec
from console.model.consent import NO_RULES, Approved, CheckAccepted, Declaration, GateRules, TicketNamed
from console.model.event import Accepted, Checked, Entered, Logged, Paused, Promoted
from console.model.gate import verdicts
from console.model.live import Release
from console.model.plan import Plan
from console.model.step import Promote
from tests.agent.manual_clock import ManualClock
from tests.agent.test_pipeline import opened
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

GOOD = Checked(table="requests", check="rows per day", ok=True, detail="14 days")
DOUBT = Checked(table="requests", check="sums", ok=None, detail="1 group")
ACCEPTED = CheckAccepted(by="ada", host="laptop", table="requests", check="sums", detail="1 group", reason="late rows")
TICKET = TicketNamed(by="ada", host="laptop", ticket="OPS-7")


def at_gate(place: Path, rules: GateRules = NO_RULES, *checks: Checked) -> PipelineController:
    controller = opened(place)
    release = Release(id="r1", pipeline="web", digest="d", tables=(), feeds=())
    plan = replace(bare_plan(steps=(Promote(),), release=release), gate=rules)
    controller.releases.propose(release, "web-1", "ada", "laptop")
    event = Accepted(release="r1", was="", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
    controller.recorder.accept("web-1", plan, event)
    for check in checks:
        controller.recorder.store(check)
    controller.recorder.store(Entered("awaiting-confirmation"))
    return controller


def approved(controller: PipelineController, by: str) -> Approved:
    return Approved(by=by, host="laptop", checks=verdicts(controller.recorder.status))


def refused(controller: PipelineController) -> ConsoleError:
    with pytest.raises(ConsoleError) as error:
        controller.promote("web-1", "", "eve", "desk")
    assert controller.recorder.status.state == "awaiting-confirmation"
    return error.value


def test_the_agent_promotes_no_inconclusive_check_that_nobody_accepted_whatever_console_asks(tmp_path: Path) -> None:
    controller = at_gate(tmp_path, NO_RULES, GOOD, DOUBT)
    assert refused(controller).code == "E_INCONCLUSIVE"
    declare(controller, "web-1", ACCEPTED)
    assert opened(tmp_path).promote("web-1", "", "eve", "desk").by == "eve"  # the next agent has it, too


def test_the_agent_counts_approvals_of_identities_and_a_check_that_changes_voids_them(tmp_path: Path) -> None:
    controller = at_gate(tmp_path, GateRules(approvals=2, ticket=True), GOOD)
    for by in ("ada", "ada"):
        declare(controller, "web-1", approved(controller, by))
    assert refused(controller).code == "E_APPROVALS"
    declare(controller, "web-1", approved(controller, "bob"))
    assert refused(controller).code == "E_TICKET"
    declare(controller, "web-1", TICKET)
    controller.recorder.store(replace(GOOD, ok=None, detail="a feed stands still"))
    controller.recorder.store(GOOD)
    assert refused(controller).code == "E_APPROVALS"
    for by in ("ada", "bob"):
        declare(controller, "web-1", approved(controller, by))
    assert controller.promote("web-1", "", "eve", "desk").by == "eve"


@pytest.mark.parametrize(
    ("declared", "rollout", "kind", "code"),
    [
        (ACCEPTED, "web-2", Conflict, "E_STATE"),
        (replace(ACCEPTED, detail="2 groups"), "web-1", Conflict, "E_STALE"),
        (replace(ACCEPTED, reason=" "), "web-1", DataError, "E_RANGE"),
        (replace(TICKET, ticket="x" * 101), "web-1", DataError, "E_RANGE"),
        (Approved(by="ada", host="laptop", checks="of yesterday"), "web-1", Conflict, "E_STALE"),
        (replace(ACCEPTED, check="groups", detail="3 groups"), "web-1", CheckFailed, "E_CHECK"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused_and_stores_nothing(
    tmp_path: Path, declared: Declaration, rollout: str, kind: type[ConsoleError], code: str
) -> None:
    wrong = Checked(table="requests", check="groups", ok=False, detail="3 groups")
    controller = at_gate(tmp_path, NO_RULES, DOUBT, wrong)
    before = controller.recorder.progress()
    with pytest.raises(kind) as error:
        declare(controller, rollout, declared)
    assert (error.value.code, controller.recorder.progress()) == (code, before)


def test_a_repeated_declaration_is_stored_once_and_names_its_author_without_control_characters(tmp_path: Path) -> None:
    controller = at_gate(tmp_path, NO_RULES, GOOD, DOUBT)
    for declared in (ACCEPTED, ACCEPTED, TICKET, TICKET):
        declare(controller, "web-1", replace(declared, host="\x1b[31mlaptop"))
    lines = [event.text for event in controller.recorder.events(Logged)]
    assert [line.split(" by ")[0] for line in lines] == ["requests: sums accepted", "ticket OPS-7 named"]
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("declared", [ACCEPTED, TICKET])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_agent_that_dies_while_it_stores_a_declaration_leaves_it_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: Declaration, when: str
) -> None:
    controller = at_gate(tmp_path, GateRules(ticket=True), GOOD, DOUBT)
    point = f"{when}-{type(declared).__name__}"

    def die(name: str) -> None:
        if name == point:
            raise SystemExit(9)

    monkeypatch.setattr(crash, "point", die)
    with pytest.raises(SystemExit):
        declare(controller, "web-1", declared)
    monkeypatch.undo()
    second = opened(tmp_path)
    stored = second.recorder.status.consent.holds(declared)
    assert stored == (when == "after")
    for each in (ACCEPTED, TICKET):
        declare(second, "web-1", each)
    assert len(second.recorder.events(Logged)) == 2
    assert second.promote("web-1", "", "eve", "desk").release == "r1"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(time.time())


def ticked(controller: PipelineController, clock: ManualClock) -> PipelineController:
    """After the agent has looked at its gate."""
    controller.self_opening = SelfOpeningGate(clock)
    controller.tick()
    if controller.self_opening._attempt:
        controller.self_opening._attempt.join(60)
    return controller


def test_a_gate_of_the_policy_auto_is_opened_by_its_agent_and_its_record_says_so(
    tmp_path: Path, clock: ManualClock
) -> None:
    controller = ticked(at_gate(tmp_path, GateRules(auto=True), GOOD), clock)
    (event,) = controller.recorder.events(Promoted)
    assert (event.by, controller.live().id) == ("the agent, as its region's policy says", "r1")


@pytest.mark.parametrize(
    ("rules", "checks"),
    [
        (NO_RULES, (GOOD,)),
        (GateRules(auto=True), (GOOD, DOUBT)),
        (GateRules(auto=True), (replace(GOOD, ok=False),)),
        (GateRules(auto=True, approvals=1), (GOOD,)),
        (GateRules(auto=True, ticket=True), (GOOD,)),
    ],
)
def test_a_gate_stays_closed_without_the_policy_and_where_a_person_has_something_to_judge(
    tmp_path: Path, clock: ManualClock, rules: GateRules, checks: tuple[Checked, ...]
) -> None:
    assert ticked(at_gate(tmp_path, rules, *checks), clock).recorder.status.state == "awaiting-confirmation"


def test_a_gate_does_not_open_itself_after_an_acceptance_or_a_pause(tmp_path: Path, clock: ManualClock) -> None:
    controller = at_gate(tmp_path, GateRules(auto=True), GOOD, DOUBT)
    declare(controller, "web-1", ACCEPTED)
    assert not due(controller.recorder.status, controller.recorder.plan)
    paused = at_gate(tmp_path / "paused", GateRules(auto=True), GOOD)
    paused.recorder.store(Paused("ada"))
    assert ticked(paused, clock).recorder.status.shown == "paused"


def test_an_opening_that_fails_is_tried_again_later_and_later(tmp_path: Path, clock: ManualClock) -> None:
    controller = at_gate(tmp_path, GateRules(auto=True), GOOD)
    controller.releases.swap("", "r1", "eve", "desk")  # another one is live: the swap is refused
    tries = 0
    for _ in range(40):
        before = len(controller.recorder.events(Entered))
        controller.self_opening.clock = clock
        controller.tick()
        if controller.self_opening._attempt:
            controller.self_opening._attempt.join(60)
        tries += len(controller.recorder.events(Entered)) > before
        clock.go(1.0)
    assert 2 <= tries <= 4


def test_an_older_console_or_agent_refuses_a_plan_whose_gate_it_would_ignore() -> None:
    bare = bare_plan(steps=(Promote(),), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()))
    plan = replace(bare, gate=GateRules(approvals=2))
    assert "gate!0.2.0" in codec.encode(plan)
    assert not [key for key in codec.encode(bare) if key.startswith("gate")]
    assert codec.decode(Plan, codec.encode(plan)) == plan


@pytest.mark.parametrize("declared", [ACCEPTED, TICKET])
def test_a_declaration_reaches_the_pipeline_as_a_console_sends_it(tmp_path: Path, declared: Declaration) -> None:
    at_gate(tmp_path, NO_RULES, GOOD, DOUBT)
    service = Service(tmp_path, Settings(region="eu"), -1)
    sent = codec.loads(codec.dumps(declared))
    assert service.method("declare")(pipeline="web", rollout="web-1", declared=sent).consent.holds(declared)
    with pytest.raises(DataError):
        service.method("declare")(pipeline="web", rollout="web-1", declared={**sent, "type": "Blessed"})


def test_a_gate_that_was_checked_again_while_its_agent_waited_for_the_lock_does_not_open_itself(
    tmp_path: Path, clock: ManualClock
) -> None:
    controller = at_gate(tmp_path, GateRules(auto=True), GOOD)
    controller.self_opening = SelfOpeningGate(clock)
    with controller.lock:
        controller.tick()
        attempt = controller.self_opening._attempt
        assert attempt is not None
        controller.recorder.store(DOUBT)
        declare(controller, "web-1", ACCEPTED)
    attempt.join(60)
    assert controller.recorder.events(Promoted) == ()
    assert [event.text for event in controller.recorder.events(Logged) if "did not open" in event.text] == []
