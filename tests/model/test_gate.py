"""The gate of a rollout: its conditions, what opens it, and what voids a declaration."""

from dataclasses import replace
from functools import reduce

import pytest

from console.errors import AtGate, CheckFailed
from console.model import codec
from console.model.consent import Approved, CheckAccepted, Declaration, GateRules, TicketNamed
from console.model.event import Checked, Entered, Event, Logged, Recorded
from console.model.gate import checks_named, counted, gate_of, objection_to, refusal, verdicts
from console.model.incident import Incident
from console.model.soak import SoakProgress
from console.model.status import Status, fold

GOOD = Checked(table="requests", check="rows per day", ok=True, detail="14 days")
DOUBT = Checked(table="requests", check="sums", ok=None, detail="1 group read again")
BAD = Checked(table="daily", check="groups", ok=False, detail="3 groups differ")
TWO = GateRules(approvals=2)


def after(*events: Event | Incident) -> Status:
    """A status at the gate after these events and declarations."""
    start = Status(rollout="web-2", release="r2", state="awaiting-confirmation")
    stored = (event if isinstance(event, Event) else Logged("said", "info", event) for event in events)
    return reduce(fold, (Recorded("web-2", n, 100.0 + n, event) for n, event in enumerate(stored, 1)), start)


def accepted(check: Checked, by: str = "ada") -> CheckAccepted:
    return CheckAccepted(
        by=by, host="laptop", table=check.table, check=check.check, detail=check.detail, reason="late rows"
    )


def approved(by: str, ticket: str = "") -> Approved:
    return Approved(by=by, host="laptop", checks="", ticket=ticket)


def test_a_gate_is_open_when_each_check_passed_or_was_accepted_and_opens_itself_only_for_the_former() -> None:
    passed, doubtful, allowed = after(GOOD), after(GOOD, DOUBT), after(GOOD, DOUBT, accepted(DOUBT))
    assert [(gate_of(s).open, gate_of(s).opens_itself) for s in (passed, doubtful, allowed)] == [
        (True, True), (False, False), (True, False),
    ]  # fmt: skip
    assert [(c.name, c.state, c.by) for c in gate_of(allowed).conditions] == [
        ("requests: rows per day", "passed", ""), ("requests: sums", "skipped", "ada"),
    ]  # fmt: skip
    assert "late rows" in gate_of(allowed).conditions[1].why


def test_a_failed_check_is_not_opened_by_an_acceptance_and_is_named_first() -> None:
    status = after(DOUBT, BAD, accepted(BAD))
    assert [c.name for c in gate_of(status, TWO).closed_by] == ["daily: groups", "requests: sums", "approvals"]
    error = refusal(gate_of(status, TWO), "eu")
    assert isinstance(error, CheckFailed)
    assert (error.code, str(error)) == ("E_CHECK", "eu: daily: groups: 3 groups differ")


@pytest.mark.parametrize(
    ("status", "rules", "code"),
    [
        (after(DOUBT), GateRules(), "E_INCONCLUSIVE"),
        (after(GOOD, approved("ada")), TWO, "E_APPROVALS"),
        (after(GOOD, approved("ada"), approved("bob")), GateRules(approvals=2, ticket=True), "E_TICKET"),
    ],
)
def test_what_people_have_to_declare_first_refuses_with_its_own_code(
    status: Status, rules: GateRules, code: str
) -> None:
    error = refusal(gate_of(status, rules), "eu")
    assert isinstance(error, AtGate)
    assert (error.code, bool(error.hint)) == (code, True)


SOAK = GateRules(min_soak=1800.0, clean_intervals=5)


@pytest.mark.parametrize(
    ("soak", "state", "why"),
    [
        (
            None,
            "waiting",
            "waits for 30 min at the gate and 5 clean rounds of checks; its agent has not reported how much of it is left",
        ),
        (SoakProgress(waited=1080, clean=3), "waiting", "12 min left, 3 of 5 clean rounds"),
        (SoakProgress(waited=1799, clean=5), "waiting", "2 s left, 5 of 5 clean rounds"),
        (SoakProgress(waited=1800, clean=4), "waiting", "waited 30 min, 4 of 5 clean rounds"),
        (
            SoakProgress(waited=1800, clean=0, unable="no lag"),
            "waiting",
            "waited 30 min, 0 of 5 clean rounds, the last round was not completed: no lag",
        ),
        (SoakProgress(waited=7200, clean=100), "passed", "waited 2 h, 5 of 5 clean rounds"),
    ],
)
def test_a_gate_that_soaks_is_closed_until_its_time_is_over_and_its_rounds_are_clean(
    soak: SoakProgress | None, state: str, why: str
) -> None:
    gate = gate_of(replace(after(GOOD), soak=soak), SOAK)
    assert [(c.state, c.why) for c in gate.conditions if c.kind == "soak"] == [(state, why)]
    assert gate.open == gate.opens_itself == (state == "passed")
    error = refusal(gate, "eu")
    assert (error and (error.code, str(error))) == (None if gate.open else ("E_SOAK", f"eu: soak: {why}"))


def test_a_region_without_such_rules_waits_for_no_soak_and_either_rule_counts_by_itself() -> None:
    status = replace(after(GOOD), soak=SoakProgress(waited=60, clean=1))
    rules = (GateRules(), GateRules(min_soak=60), GateRules(min_soak=61), GateRules(clean_intervals=1), TWO)
    assert [[c.state for c in gate_of(status, each).conditions if c.kind == "soak"] for each in rules] == [
        [], ["passed"], ["waiting"], ["passed"], [],
    ]  # fmt: skip


def test_two_approvals_are_those_of_two_identities() -> None:
    assert not gate_of(after(GOOD, approved("ada"), approved("ada")), TWO).open
    both = after(GOOD, approved("ada"), approved("bob"))
    assert [(c.state, c.by) for c in gate_of(both, TWO).conditions[1:]] == [("passed", "ada, bob")]
    assert gate_of(both, TWO).opens_itself


def test_a_ticket_counts_from_whoever_named_it_last() -> None:
    rules = GateRules(ticket=True)
    by_approval, by_name = approved("bob", "OPS-1"), TicketNamed(by="ada", host="laptop", ticket="OPS-2")
    told = [gate_of(after(GOOD, *said), rules).conditions[1] for said in ((by_approval,), (by_approval, by_name))]
    assert [(c.why, c.by, c.state) for c in told] == [("OPS-1", "bob", "passed"), ("OPS-2", "ada", "passed")]
    assert not gate_of(after(GOOD), rules).open


@pytest.mark.parametrize(
    "changed",
    [
        replace(GOOD, ok=None),
        replace(GOOD, ok=False),
        replace(DOUBT, detail="40 groups read again"),
        replace(DOUBT, ok=True),
        BAD,
        Entered("validating"),
    ],
)
def test_a_changed_check_voids_every_approval(changed: Checked | Entered) -> None:
    status = after(GOOD, DOUBT, accepted(DOUBT), approved("ada"), approved("bob"))
    assert gate_of(status, TWO).open
    later = fold(status, Recorded("web-2", 9, 200.0, changed))
    assert counted(later) == ()
    assert bool(later.consent.accepted) == (not isinstance(changed, Entered) and changed.check != DOUBT.check)
    assert "void" in gate_of(later, TWO).conditions[-1].why
    again = fold(later, Recorded("web-2", 10, 201.0, Logged("said", "info", approved("ada"))))
    assert [approval.by for approval in counted(again)] == ["ada"]


def test_other_figures_of_a_passed_check_void_nothing_and_are_the_same_verdicts() -> None:
    status = after(GOOD, DOUBT, accepted(DOUBT), approved("ada"))
    later = fold(status, Recorded("web-2", 9, 200.0, replace(GOOD, detail="15 days")))
    assert (later.consent, verdicts(later)) == (status.consent, verdicts(status))
    assert verdicts(after(GOOD, replace(DOUBT, detail="2 groups"))) != verdicts(after(GOOD, DOUBT))


def test_only_the_acceptance_of_the_check_that_changed_is_void() -> None:
    other = replace(DOUBT, check="groups")
    status = after(DOUBT, other, accepted(DOUBT), accepted(other))
    later = fold(status, Recorded("web-2", 9, 200.0, replace(DOUBT, detail="9 groups")))
    assert [c.state for c in gate_of(later).conditions] == ["skipped", "inconclusive"]
    assert [each.check for each in later.consent.accepted] == ["groups"]


def test_what_people_declared_survives_a_status_that_is_sent_and_does_not_restart_its_age() -> None:
    before = after(GOOD, DOUBT)
    status = after(
        GOOD, DOUBT, accepted(DOUBT), approved("ada", "OPS-1"), TicketNamed(by="ada", host="laptop", ticket="OPS-2")
    )
    assert status.changed == before.changed
    assert codec.decode(Status, codec.encode(status)).consent == status.consent
    assert "consent" not in codec.encode(before)


@pytest.mark.parametrize(
    ("status", "declared", "code"),
    [
        (after(GOOD, DOUBT), accepted(DOUBT), ""),
        (after(GOOD, DOUBT), replace(accepted(DOUBT), detail="read before"), "E_STALE"),
        (after(GOOD, BAD), accepted(BAD), "E_CHECK"),
        (after(GOOD), accepted(GOOD), "E_RANGE"),
        (after(GOOD), accepted(DOUBT), "E_RANGE"),
        (after(GOOD, Entered("validating")), accepted(DOUBT), "E_STATE"),
        (after(GOOD), replace(approved("ada"), checks=verdicts(after(GOOD))), ""),
        (after(GOOD, DOUBT), replace(approved("ada"), checks=verdicts(after(GOOD, DOUBT))), "E_INCONCLUSIVE"),
        (after(GOOD, DOUBT, accepted(DOUBT)), replace(approved("ada"), checks=verdicts(after(GOOD, DOUBT))), ""),
        (after(GOOD, BAD), replace(approved("ada"), checks=verdicts(after(GOOD, BAD))), "E_CHECK"),
        (after(GOOD, DOUBT), replace(approved("ada"), checks=verdicts(after(GOOD))), "E_STALE"),
    ],
)
def test_a_declaration_fits_only_the_checks_that_its_author_read(
    status: Status, declared: Declaration, code: str
) -> None:
    error = objection_to(status, declared, "eu")
    assert (error.code if error else "") == code


def test_a_check_whose_name_has_a_colon_is_found_by_the_name_that_a_refusal_gives() -> None:
    status = after(replace(DOUBT, check="recorded calls: cost"))
    (named,) = checks_named(status, "requests: recorded calls: cost")
    assert checks_named(status, "requests recorded calls cost") == (named,)
    refused = refusal(gate_of(status), "eu")
    assert refused is not None
    assert "--accept 'requests: recorded calls: cost'" in refused.hint


def test_a_person_who_approves_over_another_connection_counts_once_and_keeps_the_ticket() -> None:
    by = ("ada@laptop (SSH login from 192.0.2.7)", "ada@laptop (SSH login from 192.0.2.8)", "ada@laptop")
    status = after(GOOD, approved(by[0], "OPS-7"), approved(by[1]), approved(by[2]))
    assert [(each.by, each.ticket) for each in counted(status)] == [("ada@laptop", "OPS-7")]
    assert not gate_of(status, TWO).open


def test_a_gate_that_is_reached_again_has_waited_for_nothing() -> None:
    rules = GateRules(min_soak=1800.0, clean_intervals=5)
    soaked = replace(after(GOOD), soak=SoakProgress(waited=3600.0, clean=9))
    assert gate_of(soaked, rules).open
    events = (Entered("validating"), GOOD, Entered("awaiting-confirmation"))
    again = reduce(fold, (Recorded("web-2", n, 300.0 + n, event) for n, event in enumerate(events, 9)), soaked)
    (condition,) = (each for each in gate_of(again, rules).conditions if each.kind == "soak")
    assert (condition.state, gate_of(again, rules).open) == ("waiting", False)
    assert "waits for 30 min at the gate and 5 clean rounds of checks" in condition.why
