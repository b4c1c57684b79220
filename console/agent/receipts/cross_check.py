"""A rollout's own records against each other: decisions against events, receipts against their seals and batches."""

from collections.abc import Sequence
from typing import Any

from console.agent.receipts.ops import Decision, of_decision, receipts_of, seal
from console.agent.receipts.step_receipts import carries
from console.errors import ConsoleError
from console.model.event import BatchDone, Recorded, StepDone
from console.model.plan import Plan
from console.model.receipt import Finding
from console.model.step import Step


def ledgers(
    events: Sequence[Recorded], plan: Plan, rows: Sequence[dict[str, Any]]
) -> tuple[list[Finding], frozenset[str]]:
    """What the records say, and the steps whose receipts can be read at all."""
    recorded = any(row["kind"] == "accepted" for row in rows)
    none = "none were kept: the rollout is older than receipts"
    found = [_decisions(events, rows) if recorded else Finding("", "", "decisions", None, none)]
    done = {e.event.step for e in events if isinstance(e.event, StepDone)}
    whole = set()
    for step in plan.steps:
        if carries(step) and step.id in done:
            own = [row for row in rows if row["kind"] == "receipt" and row["step"] == step.id]
            told = _receipts(step, own, recorded)
            found.append(told)
            if own and _legible(own):
                whole.add(step.id)
                found += _batches(step, own, events)
    return found, frozenset(whole)


def _decisions(events: Sequence[Recorded], rows: Sequence[dict[str, Any]]) -> Finding:
    """Each decision among the events has its row, as the event says it, and there is no other."""
    wanted = {e.seq: of_decision(e, e.event) for e in events if isinstance(e.event, Decision)}
    held = [row for row in rows if row["kind"] != "receipt"]
    wrong = [seq for seq, row in wanted.items() if [{**row, "seal": seal(row)}] != [h for h in held if h["seq"] == seq]]
    wrong += [row["seq"] for row in held if row["seq"] not in wanted]
    kinds = ", ".join(str(row["kind"]) for row in wanted.values())
    detail = f"{len(wanted)} are as they were made: {kinds}"
    if wrong:
        listed = ", ".join(map(str, sorted(wrong)))
        detail = f"the records of who decided differ from the events, or were changed since (events {listed})"
    return Finding("", "", "decisions", not wrong, detail)


def _receipts(step: Step, rows: Sequence[dict[str, Any]], recorded: bool) -> Finding:
    """A step's receipts are all there, and none was changed."""
    head = (str(getattr(step, "target", "")), step.id, "receipts")
    if not rows:
        why = "all of them are gone" if recorded else "none were kept: the rollout is older than receipts"
        return Finding(*head, False if recorded else None, why)
    changed = tuple(str(row["day"]) for row in rows if row["seal"] != seal(row))
    if changed:
        return Finding(*head, False, f"{len(changed)} of {len(rows)} were changed after they were written", changed)
    days = {row["day"] for row in rows}
    wanted = rows[0]["days"]
    if len(rows) != wanted or len(days) != wanted:
        return Finding(*head, False, f"{len(rows)} are there, {wanted} were written")
    return Finding(*head, True, f"{wanted} of {wanted} are there and unchanged")


def _batches(step: Step, rows: Sequence[dict[str, Any]], events: Sequence[Recorded]) -> list[Finding]:
    """The receipts' rows, read from the tables, are those that the batches told."""
    batches = {e.event.position: e.event for e in events if isinstance(e.event, BatchDone) and e.event.step == step.id}
    if not batches:
        return []
    told = (sum(b.rows_in for b in batches.values()), sum(b.rows_out for b in batches.values()))
    found = (sum(row["rows_in"] for row in rows), sum(row["rows_out"] for row in rows))
    same = f"{told[0]:,} rows in and {told[1]:,} out, as the {len(batches)} batches told"
    other = f"the batches told {told[0]:,} rows in and {told[1]:,} out, the receipts {found[0]:,} and {found[1]:,}"
    table = str(getattr(step, "target", ""))
    return [Finding(table, step.id, "batches", told == found, same if told == found else other)]


def _legible(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a step's receipts can be read as such, all of one and the same place."""
    try:
        return len({receipt.how for receipt in receipts_of(rows)}) == 1
    except ConsoleError:
        return False
