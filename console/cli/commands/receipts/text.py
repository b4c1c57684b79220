"""The history as text and as JSON: rollouts, one of them in full, and the findings of its verification."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from console.cli.commands.receipts.course import course_data, course_text
from console.cli.commands.rollout.note import notes_data
from console.cli.format import count, span, table
from console.cli.gate_text import check_line
from console.cli.output import Output
from console.model.breach import breach_text
from console.model.codec import encode
from console.model.decisions import decisions
from console.model.event import BatchDone, Ended, Promoted, Recorded
from console.model.identity import identity
from console.model.receipt import Finding, Past, Receipt
from console.model.status import Status
from console.text import safe_text

_WORDS = {True: ("ok", "green"), False: ("DIFFERS", "red"), None: ("unknown", "yellow")}


def history_text(histories: Mapping[str, Past]) -> str:
    """One line per rollout, the newest first across all regions."""
    heads = ["region", "rollout", "began", "change", "state", "rows", "asked by", "decided by"]
    rows = [
        [
            safe_text(region),
            safe_text(status.rollout),
            moment(status.started),
            safe_text(f"{status.was or 'nothing'} → {status.release}"),
            status.shown,
            f"{status.rows_done:,}",
            who(status.by),
            who(status.decided_by) if status.decided_by else "",
        ]
        for region, status in _newest_first(histories)
    ]
    if not rows:
        return "no rollout yet"
    remarks = [line for region, status in _newest_first(histories) for line in _remarks(region, status)]
    return "\n".join([table(heads, rows, right=(5,)), *(["", *remarks] if remarks else [])])


def _remarks(region: str, status: Status) -> Iterator[str]:
    """Notes, the newest first, checks that failed after the promotion, and changed limits."""
    place = safe_text(f"{region} {status.rollout}")
    for note in reversed(status.notes):
        yield f"{moment(note.at)}  {place}  note by {who(note.by)} from {safe_text(note.host)}: {safe_text(note.text)}"
    for breach in status.watched.breaches:
        yield f"{moment(breach.at)}  {place}  {safe_text(breach_text(breach, taken_back=status.state == 'rolled-back'), 400)}"
    if status.tuned and (changed := ", ".join(status.tuned.tuning.changed)):
        yield f"{place}  tuned: {changed}, last by {who(status.tuned.by)} from {safe_text(status.tuned.host)}"


def history_data(histories: Mapping[str, Past]) -> list[dict[str, Any]]:
    return [{"region": region, **_summary(status)} for region, status in _newest_first(histories)]


def rollout_text(region: str, history: Past) -> str:
    """One rollout of one region: its line, decisions with their authors, steps, batches, receipts and checks."""
    status = _status(history)
    change = f"{status.was or 'nothing'} → {status.release} {status.shown}"
    carried = f"{count(status.rows_done, 'row')} carried in {span(_decided_at(history.events) - status.started)}"
    lines = [
        safe_text(f"{region}: {status.rollout}: {change}, {carried}"),
        f"  plan {safe_text(status.plan)}",
        *_decisions(history.events),
        *course_text(history.events, time.time()),
        *_batches(history.events),
        *_receipts(history.receipts),
    ]
    lines += [f"  check {check_line(check, status)}" for check in status.checks]
    return "\n".join(lines)


def rollout_data(region: str, history: Past) -> dict[str, Any]:
    decided = [
        {"at": d.at, "decision": d.what, "who": identity(d.by).name, "identity": identity(d.by).source, "host": d.host}
        for d in decisions(history.events)
    ]
    return {
        "region": region,
        **_summary(_status(history)),
        "decisions": decided,
        **course_data(history.events, time.time()),
        "events": [encode(recorded) for recorded in history.events],
        "receipts": [encode(receipt) for receipt in history.receipts],
    }


def verified_text(
    output: Output, region: str, rollout: str, findings: Sequence[Finding], *, stopped: bool = False
) -> str:
    """Totals, then each check. stopped: the run was cancelled before its end"""
    lines = []
    for finding in findings:
        word, colour = _WORDS[finding.ok]
        place = " ".join(part for part in (finding.step or finding.table, finding.what) if part)
        lines.append(f"  {output.paint(f'{word:<7}', colour)}  {safe_text(place)}: {safe_text(finding.detail)}")
    return "\n".join([safe_text(f"{region}: {rollout}: {_verdict(findings, stopped)}"), *lines])


def verified_data(region: str, findings: Sequence[Finding], *, stopped: bool = False) -> dict[str, Any]:
    equal = not any(finding.ok is False for finding in findings)
    complete = {"equal": equal, "complete": not stopped}
    return {"region": region, **complete, "findings": [encode(finding) for finding in findings]}


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%SZ}" if at else ""


def who(by: str) -> str:
    """A name with its source."""
    identified = identity(by)
    return safe_text(f"{identified.name} ({identified.source})", 160)


def _verdict(findings: Sequence[Finding], stopped: bool) -> str:
    off, unknown = (sum(f.ok is verdict for f in findings) for verdict in (False, None))
    parts = [f"{off} of {count(len(findings), 'check')} differ"] if off else []
    parts += [f"{unknown} can no longer be checked"] if unknown else []
    if stopped:
        made = f"cancelled after {count(len(findings), 'check')}"
        return ", ".join([made, *(parts or ["none of which differs"] if findings else [])])
    return ", ".join(parts) or f"all {count(len(findings), 'check')} equal"


def _newest_first(histories: Mapping[str, Past]) -> list[tuple[str, Status]]:
    every = [(region, status) for region, history in histories.items() for status in history.rollouts]
    return sorted(every, key=lambda entry: entry[1].started, reverse=True)


def _status(history: Past) -> Status:
    return next(status for status in history.rollouts if status.rollout == history.events[0].rollout)


def _summary(status: Status) -> dict[str, Any]:
    return {
        "rollout": status.rollout,
        "release": status.release,
        "was": status.was,
        "state": status.shown,
        "began": status.started,
        "changed": status.changed,
        "rows": status.rows_done,
        "plan": status.plan,
        "by": status.by,
        "identity": identity(status.by).source,
        "decided_by": status.decided_by,
        "decided_identity": identity(status.decided_by).source if status.decided_by else "",
        "notes": notes_data(status.notes),
        "tuned": encode(status.tuned),
    }


def _decided_at(events: Sequence[Recorded]) -> float:
    """The end of the rollout itself; later decisions are separate."""
    ends = (recorded.at for recorded in events if isinstance(recorded.event, Promoted | Ended))
    return next(ends, events[-1].at)


def _decisions(events: Sequence[Recorded]) -> Iterator[str]:
    for decision in decisions(events):
        place = f" from {safe_text(decision.host)}" if decision.host else ""
        yield f"  {moment(decision.at)}  {safe_text(decision.what)} by {who(decision.by)}{place}"


def _batches(events: Sequence[Recorded]) -> Iterator[str]:
    done = [recorded.event for recorded in events if isinstance(recorded.event, BatchDone)]
    for step, group in groupby(sorted(done, key=lambda b: b.step), key=lambda b: b.step):
        batches = list(group)
        came, went = sum(b.rows_in for b in batches), sum(b.rows_out for b in batches)
        spent = span(sum(b.seconds for b in batches))
        yield safe_text(f"  {step}: {count(len(batches), 'batch', 'batches')}, {came:,} rows in, {went:,} out, {spent}")


def _receipts(receipts: Sequence[Receipt]) -> Iterator[str]:
    for _, group in groupby(receipts, key=lambda r: r.step):
        own = list(group)
        first = own[0]
        place = f"{first.source} up to version {first.fence} → {first.target} version {first.version}"
        yield safe_text(f"  receipts of {first.step}: {place}, position {first.position}, {moment(first.at)}")
        rows = [
            [r.day or "no day", f"{r.rows_in:,}", f"{r.rows_out:,}", r.checksum_in or "-", r.checksum_out or "-"]
            for r in own
        ]
        heads = ["day", "rows in", "rows out", "checksum in", "checksum out"]
        yield table(heads, [[safe_text(cell) for cell in row] for row in rows], right=(1, 2), indent=4)
