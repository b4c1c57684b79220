"""One rollout in full: decisions, account of time, verification, receipts and checks. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from textual.content import Content

from console.model.decisions import decisions
from console.model.event import Recorded
from console.model.identity import identity
from console.model.receipt import Finding, Past, Receipt
from console.model.status import Status
from console.runner.view import RegionView, plan_label
from console.tui.drawing import cell, draw_label, heading, safe, wrap_indented
from console.tui.format import count, plural, span
from console.tui.history.state import AuditState
from console.tui.labels import STYLES, Tone, status_label
from console.tui.panes.checks import check_lines
from console.tui.rollout.log import LogEntry, log_lines
from console.tui.rollout.slow import slow_lines
from console.tui.times import moment

MOST_DAYS = 400
VERDICTS: dict[bool | None, tuple[str, str, Tone]] = {
    True: ("✓", "equal", "good"),
    False: ("✗", "differs", "bad"),
    None: ("?", "unknown", "warn"),
}


def whole_lines(
    view: RegionView, past: Past | None, error: str, audit: AuditState | None, width: int, now: float,
    *, log: Sequence[LogEntry] = (),
) -> Iterator[Content]:  # fmt: skip
    """view: of this rollout's status and events; past: None while it is being read; error: why it could not be

    log  the lines of this rollout
    """
    status = view.status
    yield _head(view)
    if audit:
        yield from [Content(""), *audit_lines(audit, width, now)]
    yield from _section("who did what", _people(view, width, now))
    yield from _section("where the time went", slow_lines(view, (), width, now) if view.events else ())
    checks = sorted(status.checks, key=lambda check: check.ok is True)  # failed and inconclusive ones first
    yield from _section("checks", (line for check in checks for line in check_lines(check, width, status)))
    if past:
        none = [Content.styled("none yet: a step's receipts are written at its end.", "$text-muted")]
        yield from _section("receipts", list(_receipts(past.receipts, width)) or none)
    elif error:
        yield from [Content(""), *wrap_indented(safe(f"not read: {error}", "$text-error"), 0, width)]
    else:
        yield from [Content(""), Content.styled("receipts are being read …", "$text-muted")]
    yield from _section("log", log_lines(log) if log else ())


def of_rollout(view: RegionView, status: Status, events: Sequence[Recorded]) -> RegionView:
    """A region's view as if this were its current rollout; only the current rollout has its accepted plan."""
    current = view.status.rollout == status.rollout
    return replace(view, status=status, events=tuple(events), accepted=view.accepted if current else None)


def _section(name: str, lines: Iterator[Content] | Sequence[Content]) -> Iterator[Content]:
    listed = list(lines)
    if listed:
        yield from [Content(""), heading(name), *listed]


def _head(view: RegionView) -> Content:
    status = view.status
    change = f"{status.was or 'nothing'} → {status.release}"
    rows = f" · {count(status.rows_done)} rows" if status.rows_done else " · no history moved"
    plan = f" · plan {plan_label(view.accepted)}" if view.accepted else ""
    return Content.assemble(
        safe(view.region.name, "bold", 60), " ", safe(status.rollout, limit=60), ": ", safe(change, limit=80), ", ",
        draw_label(status_label(status)), rows, safe(plan, "$text-muted", 40),
    )  # fmt: skip


def _people(view: RegionView, width: int, now: float) -> Iterator[Content]:
    for decision in decisions(view.events):
        who = identity(decision.by)
        place = f" from {decision.host}" if decision.host and f"@{decision.host}" not in who.name else ""
        text = Content.assemble(
            safe(decision.what, limit=700), "  ", safe(f"{who.name}{place} ({who.source})", "$text-muted", 200)
        )
        first, *rest = wrap_indented(text, 11, width)
        when = cell(Content.styled(moment(decision.at, now), "$text-muted"), 10)
        yield from [when + first[10:], *rest]


# -- verification


def audit_lines(audit: AuditState, width: int, now: float) -> Iterator[Content]:
    """Progress or outcome; then differing, unknown and equal findings."""
    yield heading("verify") + _outcome(audit, now)
    if audit.outcome == "running" and (progress := audit.progress):
        place = " ".join(part for part in (progress.step or progress.table, progress.what) if part)
        job = progress.job
        tasks = f" · tasks {job.done} of {job.tasks}, stage {job.stage} of {job.stages}" if job else ""
        yield safe(f"▶ {place}{tasks}", "$text-primary", 200).truncate(width, ellipsis=True)
    for finding in sorted(audit.findings, key=_gravity):
        yield from finding_lines(finding, width)


def _outcome(audit: AuditState, now: float) -> Content:
    progress, took = audit.progress, span((audit.ended or now) - audit.began)
    match audit.outcome:
        case "running":
            at = f"{progress.number} of {progress.of}" if progress else "waiting for the agent"
            return Content.assemble(f"  {at} · {took} · ", ("V", "bold $text-accent"), " cancels it")
        case "stopped":
            at = f" at {progress.number} of {progress.of}" if progress else " before the first check"
            return safe(f"  cancelled{at}, {took}", "$text-warning", 120)
        case "failed":
            return safe(f"  failed: {audit.error}", "$text-error", 300)
        case _:
            return Content.assemble("  ", _verdict(audit.findings), f" · {moment(audit.ended, now)}, in {took}")


def verdict_text(findings: Sequence[Finding]) -> str:
    """`1 of 12 checks differ`, `all 12 checks equal`."""
    off, unknown = (sum(finding.ok is ok for finding in findings) for ok in (False, None))
    checks = plural(len(findings), "check")
    if off:
        return f"{off} of {checks} differ"
    return f"{unknown} of {checks} can no longer be made" if unknown else f"all {checks} equal"


def _verdict(findings: Sequence[Finding]) -> Content:
    tone: Tone = "good"
    for finding in findings:
        tone = "bad" if finding.ok is False else "warn" if finding.ok is None and tone == "good" else tone
    return Content.styled(verdict_text(findings), STYLES[tone])


def _gravity(finding: Finding) -> int:
    return 0 if finding.ok is False else 1 if finding.ok is None else 2


def finding_lines(finding: Finding, width: int) -> list[Content]:
    """`✓ equal   backfill/requests/parse source · 110 rows in 2 days are equal`."""
    symbol, word, tone = VERDICTS[finding.ok]
    place = " ".join(part for part in (finding.step or finding.table, finding.what) if part)
    head = Content.styled(f"{symbol} {word:<8}", STYLES[tone])
    text = Content.assemble(safe(place, "bold", 120), " · ", safe(finding.detail, "$text-muted"))
    first, *rest = wrap_indented(text, 10, width)
    return [head + first[10:], *rest]


# -- receipts


def _receipts(receipts: Sequence[Receipt], width: int) -> Iterator[Content]:
    """Step by step: its place and totals, then each day."""
    for _, group in groupby(receipts, key=lambda receipt: receipt.step):
        own = list(group)
        first = own[0]
        place = f"{first.source} up to version {first.fence} → {first.target} version {first.version}"
        came, went = sum(r.rows_in for r in own), sum(r.rows_out for r in own)
        total = f"{plural(len(own), 'day')}, {count(came)} rows in, {count(went)} out"
        yield from wrap_indented(
            Content.assemble(safe(first.step, "bold", 120), " · ", safe(f"{place} · {total}")), 0, width
        )
        for receipt in own[:MOST_DAYS]:
            sums = f"  {receipt.checksum_in or '-'}  {receipt.checksum_out or '-'}" if width >= 76 else ""
            line = f"  {receipt.day or 'no day':<12}{count(receipt.rows_in):>14}{count(receipt.rows_out):>14}{sums}"
            yield safe(line, "$text-muted", 200).truncate(width, ellipsis=True)
