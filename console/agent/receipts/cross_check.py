"""A rollout's records compared with each other: decisions with events, receipts with their seals and with batches."""

from collections.abc import Sequence
from typing import Any

from console.agent.receipts.findings import Subject
from console.agent.receipts.step_receipts import has_receipts
from console.agent.store.ops import Decision, of_decision, receipts_of, seal
from console.errors import ConsoleError
from console.model.event import BatchDone, Logged, Recorded, StepDone
from console.model.plan import Plan
from console.model.receipt import Finding
from console.model.step import Backfill, Step
from console.model.tuning import AS_PLANNED, Tuned, described, limits
from console.text import redacted


def cross_check(
    events: Sequence[Recorded], plan: Plan, rows: Sequence[dict[str, Any]]
) -> tuple[list[Finding], frozenset[str]]:
    """Findings about the records, and the steps whose receipts are readable."""
    recorded = any(row["kind"] == "accepted" for row in rows)
    none = "none were kept: the rollout is older than receipts"
    findings = [_decisions(events, rows) if recorded else Subject("", "", "decisions").finding(None, none)]
    findings += _limits(events, plan)
    done = {e.event.step for e in events if isinstance(e.event, StepDone)}
    readable = set()
    for step in plan.steps:
        if has_receipts(step) and step.id in done:
            own = [row for row in rows if row["kind"] == "receipt" and row["step"] == step.id]
            findings.append(_receipts(step, own, recorded))
            if own and _readable(own):
                readable.add(step.id)
                findings += _batches(step, own, events, merged=_reads_merged(step, plan))
    return findings, frozenset(readable)


def _decisions(events: Sequence[Recorded], rows: Sequence[dict[str, Any]]) -> Finding:
    """Whether each decision among the events has an equal row, and there are no other rows."""
    wanted = {e.seq: of_decision(e, e.event) for e in events if isinstance(e.event, Decision)}
    decisions = [row for row in rows if row["kind"] != "receipt"]
    wrong = [
        seq
        for seq, row in wanted.items()
        if [{**row, "seal": seal(row)}] != [own for own in decisions if own["seq"] == seq]
    ]
    wrong += [row["seq"] for row in decisions if row["seq"] not in wanted]
    kinds = ", ".join(str(row["kind"]) for row in wanted.values())
    detail = f"{len(wanted)} are as they were made: {kinds}"
    if wrong:
        listed = ", ".join(map(str, sorted(wrong)))
        detail = f"the records of who decided differ from the events, or were changed since (events {listed})"
    return Subject("", "", "decisions").finding(not wrong, detail)


def _limits(events: Sequence[Recorded], plan: Plan) -> list[Finding]:
    """Changes of limits while the rollout ran: each line must match its stored values. They are not in `ops`, because
    0.1.0 would report them as decisions that nobody made."""
    before, as_made, wrong = AS_PLANNED, [], []
    for recorded in events:
        match recorded.event:
            case Logged(text=line, incident=Tuned(by=by, host=host, tuning=after)):
                change = described(limits(plan, before), limits(plan, after)) or "as planned"
                as_made.append(f"{change} by {by} from {host}")
                wrong += [] if line == redacted(f"{by} from {host}: {change}") else [recorded.seq]
                before = after
    if not as_made:
        return []
    detail = f"changed as recorded: {'; '.join(as_made)}"
    if wrong:
        detail = f"lines and values of changed limits differ (events {', '.join(map(str, wrong))})"
    return [Subject("", "", "limits").finding(not wrong, detail)]


def _receipts(step: Step, rows: Sequence[dict[str, Any]], recorded: bool) -> Finding:
    """Whether a step's receipts are complete and unchanged."""
    subject = Subject(str(getattr(step, "target", "")), step.id, "receipts")
    if not rows:
        why = "all of them are gone" if recorded else "none were kept: the rollout is older than receipts"
        return subject.finding(False if recorded else None, why)
    changed = tuple(str(row["day"]) for row in rows if row["seal"] != seal(row))
    if changed:
        return subject.finding(False, f"{len(changed)} of {len(rows)} were changed after they were written", changed)
    days = {row["day"] for row in rows}
    wanted = rows[0]["days"]
    if len(rows) != wanted or len(days) != wanted:
        return subject.finding(False, f"{len(rows)} are there, {wanted} were written")
    return subject.finding(True, f"{wanted} of {wanted} are there and unchanged")


def _reads_merged(step: Step, plan: Plan) -> bool:
    """Whether its batches read a table of newest rows merged, while its receipts count the stored rows."""
    if not isinstance(step, Backfill) or step.route != "forward" or step.stored:
        return False
    target = plan.release.table(step.target)
    return target is not None and target.newest is not None


def _batches(step: Step, rows: Sequence[dict[str, Any]], events: Sequence[Recorded], *, merged: bool) -> list[Finding]:
    """Whether row counts of the receipts, read from the tables, equal those reported by the batches, or exceed merged ones."""
    batches = {e.event.position: e.event for e in events if isinstance(e.event, BatchDone) and e.event.step == step.id}
    if not batches:
        return []
    reported = (sum(b.rows_in for b in batches.values()), sum(b.rows_out for b in batches.values()))
    counted = (sum(row["rows_in"] for row in rows), sum(row["rows_out"] for row in rows))
    right = reported[1] == counted[1] and (reported[0] <= counted[0] if merged else reported[0] == counted[0])
    detail = f"{reported[0]:,} rows in and {reported[1]:,} out, as the {len(batches)} batches reported"
    if right and reported != counted:
        detail += f"; {counted[0]:,} are stored, which merge to them"
    if not right:
        receipts = f"the receipts {counted[0]:,} and {counted[1]:,}"
        detail = f"the batches reported {reported[0]:,} rows in and {reported[1]:,} out, {receipts}"
    subject = Subject(str(getattr(step, "target", "")), step.id, "batches")
    return [subject.finding(right, detail)]


def _readable(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a step's receipts decode, and all refer to the same tables and versions."""
    try:
        return len({receipt.how for receipt in receipts_of(rows)}) == 1
    except ConsoleError:
        return False
