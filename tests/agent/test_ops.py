"""The table of decisions and receipts: nothing twice, nothing lost to a death in between, nothing changed unseen. No Java."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.receipts.cross_check import cross_check
from console.agent.receipts.history import read_history
from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Rollouts
from console.agent.store.ops import Ops, receipts_of
from console.model.event import Accepted, BatchDone, Ended, Entered, Event, Promoted, RolledBack, StepDone
from console.model.live import Release
from console.model.plan import Plan
from console.model.receipt import Finding, Measured, Place, Receipt
from console.model.step import Backfill, Promote
from tests.planning.test_newest import seen
from tests.planning.world import planned
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

STEP = Backfill(
    materialization="parse",
    source="landing",
    target="requests",
    route="replay",
    sql="SELECT 1",
    time="ts",
    rows=30,
    bytes=300,
    days=2,
    batches=1,
)
PLAN = bare_plan(steps=(STEP, Promote()), release=Release(id="r1", pipeline="web", digest="d", tables=(), feeds=()))
# a table of newest rows that is copied from itself
COPY = replace(STEP, materialization="", source="last_seen", target="last_seen", route="forward")
NEWEST = planned(seen()).release
ACCEPTED = Accepted(
    release="r1", was="", plan="digest", by="ada@laptop", host="laptop", steps=((STEP.id, 30), ("promote", 0))
)
BOT = "repo:acme/web (OIDC of ci.example.com, unverified)"
HOW = Measured(
    source=Place(path="landing", id="i", version=3, time="ts", columns=(("ts", "timestamp"),)),
    target=Place(path="requests/v-1", id="j", version=5),
)
LIFE: tuple[Event, ...] = (
    Entered("backfilling"),
    BatchDone(step=STEP.id, label="all", position=2, of=2, rows_in=30, rows_out=28, bytes=300, seconds=1.0, version=5),
    StepDone(STEP.id),
    Promoted(release="r1", was="", by=BOT, host="runner", version=2),
    RolledBack(release="r0", was="r1", by="ada@laptop", host="laptop", version=3),
    Ended("cleaned", "ada@laptop from laptop"),
)


def receipt(day: str, rows: int) -> Receipt:
    return Receipt(
        rollout="web-1",
        step=STEP.id,
        target="requests",
        source="landing",
        day=day,
        fence=3,
        position=2,
        version=5,
        rows_in=rows,
        checksum_in=f"{rows:x}-0",
        rows_out=rows - 1,
        checksum_out=f"{rows:x}-1",
        days=2,
        how=HOW,
    )


RECEIPTS = (receipt("2026-11-02", 20), receipt("", 10))


def lived(place: Path, events: tuple[Event, ...] = LIFE, plan: Plan = PLAN, step: str = STEP.id) -> Ops:
    """A rollout's whole life, recorded. step: of its receipts"""
    recorder = Recorder(Rollouts(place, "web"))
    recorder.accept("web-1", plan, ACCEPTED)
    ops = Ops(place / "_console" / "web")
    ops.store_receipts(tuple(replace(each, step=step) for each in RECEIPTS))
    for event in events:
        recorder.store(event)
    return ops


def judged(place: Path, plan: Plan = PLAN) -> dict[str, Finding]:
    events = Rollouts(place, "web").events("web-1")
    return {f.what: f for f in cross_check(events, plan, Ops(place / "_console" / "web").rows("web-1"))[0]}


def test_every_decision_is_kept_with_who_made_it_and_how_that_is_known(tmp_path: Path) -> None:
    rows = [row for row in lived(tmp_path).rows("web-1") if row["kind"] != "receipt"]
    assert [(r["kind"], r["who"], r["identity"], r["release"]) for r in sorted(rows, key=lambda r: r["seq"])] == [
        ("accepted", "ada@laptop", "OS user", "r1"),
        ("promoted", "repo:acme/web", "OIDC of ci.example.com, unverified", "r1"),
        ("rolled-back", "ada@laptop", "OS user", "r0"),
        ("cleaned", "ada@laptop from laptop", "OS user", ""),
    ]


@pytest.mark.parametrize("after", range(len(LIFE) + 1))
def test_a_decision_whose_row_was_lost_to_a_death_is_kept_by_the_next_agent_and_never_twice(
    tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: tuple[Event, ...] = LIFE[:after]
    with monkeypatch.context() as dying:
        if done:
            last = done[-1]
            store = Ops.store_decision
            dying.setattr(Ops, "store_decision", lambda ops, r: None if r.event == last else store(ops, r))
        else:  # died right after the plan was accepted
            dying.setattr(Ops, "store_decision", lambda *_: None)
        lived(tmp_path, done)
    for _ in range(2):
        Recorder(Rollouts(tmp_path, "web"))
    assert judged(tmp_path)["decisions"].ok is True


def test_receipts_are_written_once_and_read_as_they_were_written(tmp_path: Path) -> None:
    ops = lived(tmp_path)
    ops.store_receipts(tuple(replace(r, rows_in=99) for r in RECEIPTS))
    receipts = receipts_of(ops.rows("web-1"))
    assert [replace(r, at=0.0) for r in receipts] == list(RECEIPTS)
    history = read_history(tmp_path, "web", "web-1")
    assert [(r.day, r.how) for r in history.receipts] == [("2026-11-02", None), ("", None)]
    assert [status.state for status in history.rollouts] == ["cleaned"]
    assert read_history(tmp_path, "web", "*").events == ()


def test_an_untouched_ledger_agrees_with_itself(tmp_path: Path) -> None:
    lived(tmp_path)
    assert {what: finding.ok for what, finding in judged(tmp_path).items()} == dict.fromkeys(
        ("decisions", "receipts", "batches"), True
    )


def test_receipts_that_say_other_than_the_batches_are_found(tmp_path: Path) -> None:
    batch = BatchDone(
        step=STEP.id, label="all", position=2, of=2, rows_in=30, rows_out=29, bytes=300, seconds=1.0, version=5
    )
    lived(tmp_path, (batch, StepDone(STEP.id)))
    finding = judged(tmp_path)["batches"]
    assert (finding.ok, finding.detail) == (False, "the batches reported 30 rows in and 29 out, the receipts 30 and 28")


@pytest.mark.parametrize(
    ("rows_in", "rows_out", "ok"), [(30, 28, True), (12, 28, True), (31, 28, False), (12, 12, False)]
)
def test_batches_that_read_newest_rows_as_they_are_shown_read_fewer_than_are_stored(
    tmp_path: Path, rows_in: int, rows_out: int, ok: bool
) -> None:
    batch = BatchDone(
        step=COPY.id,
        label="all",
        position=2,
        of=2,
        rows_in=rows_in,
        rows_out=rows_out,
        bytes=300,
        seconds=1.0,
        version=5,
    )
    lived(tmp_path, (batch, StepDone(COPY.id)), replace(PLAN, steps=(COPY, Promote()), release=NEWEST), COPY.id)
    finding = judged(tmp_path, replace(PLAN, steps=(COPY,), release=NEWEST))["batches"]
    assert finding.ok is ok, finding.detail


def by_hand(place: Path, change: Callable[[DeltaTable], Any]) -> dict[str, bool | None]:
    lived(place)
    change(DeltaTable(str(place / "_console" / "web" / "ops")))
    return {what: finding.ok for what, finding in judged(place).items()}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.update(updates={"who": "'eve'"}, predicate="kind = 'promoted'"), "decisions"),
        (lambda t: t.update(updates={"at": "1.0"}, predicate="kind = 'rolled-back'"), "decisions"),
        (lambda t: t.delete("kind = 'promoted'"), "decisions"),
        (lambda t: t.update(updates={"rows_in": "11"}, predicate="kind = 'receipt' AND day = ''"), "receipts"),
        (lambda t: t.update(updates={"how": "'{}'"}, predicate="kind = 'receipt'"), "receipts"),
        (lambda t: t.delete("kind = 'receipt' AND day = ''"), "receipts"),
        (lambda t: t.delete("kind = 'receipt'"), "receipts"),
    ],
)
def test_what_was_changed_by_hand_is_found(tmp_path: Path, change: Callable[[DeltaTable], Any], what: str) -> None:
    assert by_hand(tmp_path, change)[what] is False


def test_a_rollout_of_an_earlier_version_is_not_called_forged_whatever_is_decided_of_it_now(tmp_path: Path) -> None:
    rollouts = Rollouts(tmp_path, "web")
    for seq, event in enumerate((ACCEPTED, *LIFE[:-1]), 1):
        rollouts.append("web-1", seq, event, PLAN)
    Recorder(rollouts).store(LIFE[-1])
    Recorder(rollouts)
    findings = judged(tmp_path)
    assert [(f.what, f.ok) for f in findings.values()] == [("decisions", None), ("receipts", None)]
    assert "older than receipts" in findings["receipts"].detail
