"""What failed after a promotion, what followed, and who decided: folded from a rollout's events, and put into words."""

from dataclasses import replace
from functools import reduce

import pytest

from console.model.breach import (
    Breached,
    OnBreach,
    WatchEnded,
    WatchNews,
    WatchProgress,
    WatchSteered,
    breach_text,
    news_text,
    watch_text,
)
from console.model.codec import decode, encode
from console.model.consent import GateRules
from console.model.decisions import decisions
from console.model.event import Accepted, Checked, Event, Logged, Promoted, Recorded, RolledBack
from console.model.gate import gate_of, refusal
from console.model.status import Status, fold

LOST = Breached(table="requests", check="rows per day", detail="2 → 1", action="pause")
OTHER = replace(LOST, check="sums")
PAUSED, RESUMED = WatchSteered(by="ada", verb="pause"), WatchSteered(by="ada", verb="resume")


def recorded(*events: Event | WatchNews) -> list[Recorded]:
    stored = (event if isinstance(event, Event) else Logged(news_text(event), "info", event) for event in events)
    return [Recorded("web-2", n, 100.0 + n, event) for n, event in enumerate(stored, 1)]


def after(*events: Event | WatchNews) -> Status:
    start = Status(rollout="web-2", release="r2", state="live", changed=50.0)
    return reduce(fold, recorded(*events), start)


@pytest.mark.parametrize(
    ("events", "holds"),
    [
        ((), ""),
        ((LOST,), "requests: rows per day: 2 → 1"),
        ((LOST, RESUMED), ""),
        ((LOST, RESUMED, LOST), ""),  # the same check is not held against it again
        ((LOST, RESUMED, OTHER), "requests: sums: 2 → 1"),
        ((PAUSED,), "paused by ada"),
        ((PAUSED, RESUMED), ""),
        ((PAUSED, LOST, RESUMED), ""),
        ((replace(LOST, action="tell"),), ""),
        ((replace(LOST, action="rollback"),), "requests: rows per day: 2 → 1"),
        ((LOST, WatchEnded(rounds=9)), "requests: rows per day: 2 → 1"),  # until a person decides
    ],
)
def test_the_next_wave_is_held_by_what_failed_and_by_who_paused_until_somebody_answers(
    events: tuple[WatchNews, ...], holds: str
) -> None:
    assert after(*events).watched.holds == holds


def test_nothing_of_a_watch_changes_since_when_the_release_is_live() -> None:
    lost = Checked(table="requests", check="rows per day", ok=False, detail="2 → 1")
    status = after(lost, LOST, PAUSED, RESUMED, WatchEnded(rounds=3, unclear=("requests: sums",)))
    assert (status.changed, status.state, status.watched.unclear) == (50.0, "live", ("requests: sums",))
    assert status.watched.ended == 105.0


def test_the_next_rollout_begins_without_breaches_and_knows_what_was_taken_back() -> None:
    accepted = Accepted(release="r3", was="r1", plan="d", by="ada", host="laptop", steps=(), taken_back="r2")
    status = after(LOST, accepted)
    assert (status.watched.breaches, status.taken_back) == ((), "r2")


def test_after_a_return_a_person_may_promote_and_no_gate_opens_itself() -> None:
    good = Checked(table="requests", check="rows per day", ok=True, detail="equal")
    waits = Status(rollout="web-3", state="awaiting-confirmation", checks=(good,))
    assert gate_of(waits).opens_itself
    gate = gate_of(replace(waits, taken_back="r2"))
    assert (gate.open, gate.opens_itself, refusal(gate, "eu")) == (True, False, None)
    assert [(each.kind, each.state) for each in gate.conditions] == [("check", "passed"), ("return", "skipped")]


def test_what_is_stored_is_read_again_and_an_older_reader_has_the_line() -> None:
    for each in recorded(LOST, PAUSED, RESUMED, WatchEnded(rounds=2)):
        assert decode(Recorded, encode(each)) == each
        assert isinstance(each.event, Logged)
        assert each.event.text
    rules = GateRules(watch=60.0, on_breach="tell", watch_query="SELECT true", watch_tables=("requests",))
    assert decode(GateRules, encode(rules)) == rules


def test_the_history_names_who_decided_what() -> None:
    promoted = Promoted(release="r2", was="r1", by="ada", host="laptop", version=3)
    back = RolledBack(release="r1", was="r2", by="the agent, since a check failed", host="host", version=4)
    told = [(each.what, each.by) for each in decisions(recorded(promoted, LOST, PAUSED, RESUMED, back))]
    assert told == [
        ("promoted r2", "ada"),
        ("found after the promotion: requests: rows per day failed: 2 → 1", "the agent, as its region's policy says"),
        ("paused the watch", "ada"),
        ("resumed the watch", "ada"),
        ("rolled back to r1", "the agent, since a check failed"),
    ]


@pytest.mark.parametrize(
    ("action", "taken_back", "ends"),
    [
        ("tell", False, "failed (2 → 1)"),
        ("pause", False, "failed (2 → 1): the next wave is held"),
        ("rollback", False, "failed (2 → 1): to be rolled back; the next wave is held"),
        ("rollback", True, "failed (2 → 1): rolled back by its agent"),
    ],
)
def test_a_breach_says_what_follows(action: OnBreach, taken_back: bool, ends: str) -> None:
    (breach,) = after(replace(LOST, action=action)).watched.breaches
    assert breach_text(breach, taken_back=taken_back) == f"after the promotion requests: rows per day {ends}"


def test_progress_says_how_long_it_goes_on_and_what_keeps_it_from_that() -> None:
    assert watch_text(WatchProgress(left=720.0), 0.0) == "watched for another 12 min: no round has ended yet"
    going = WatchProgress(left=720.0, at=100.0, rounds=80, clean=80)
    assert watch_text(going, 109.0) == "watched for another 12 min: 80 rounds, the last one 9 s ago"
    assert watch_text(replace(going, left=0.0), 109.0).startswith("watched until its last round has ended")
    assert watch_text(replace(going, unable="no lag"), 109.0).endswith("the last round was not completed: no lag")
