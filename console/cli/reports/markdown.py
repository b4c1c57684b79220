"""A run as Markdown: for a step's summary, a comment, or a file."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from console.cli.format import count, size, span
from console.cli.reports.run_report import RegionReport, RegionVerdict, RunReport, ordered
from console.cli.reports.words import (
    CALL_HEADS,
    CHECK_WORDS,
    DAYS_NAMED,
    call_figures,
    checks_words,
    column_label,
    day_counts,
    day_label,
    error_lines,
    facts,
    headline,
    history_words,
    moment,
    most_telling,
    release_words,
    share_words,
    unlike,
)
from console.markup import escaped, safe_markdown
from console.model.plan import ACTIONS, Plan

SIGNS = {
    RegionVerdict.PASSED: "✅", RegionVerdict.AT_GATE: "🔶", RegionVerdict.INCONCLUSIVE: "❔", RegionVerdict.FAILED: "❌", RegionVerdict.UNFINISHED: "⏳",
    RegionVerdict.SKIPPED: "➖",
}  # fmt: skip
CUT = "\n… cut: `console status` shows the rest\n"


def markdown(run: RunReport, most: int = 0) -> str:
    """The whole report; with `most`, cut at a line before so many bytes."""
    text = "\n".join(_lines(run)) + "\n"
    raw = text.encode()
    if not most or len(raw) <= most:
        return text
    kept = raw[: most - len(CUT.encode())].rpartition(b"\n")[0]
    return f"{kept.decode()}{CUT}"


def _lines(run: RunReport) -> Iterator[str]:
    yield f"## {safe_markdown(run.pipeline or 'console')}: {safe_markdown(headline(run))}"
    yield ""
    if run.error:
        yield from (f"- {safe_markdown(line)}" for line in error_lines(run.error))
        yield ""
    regions = ordered(run.regions)
    if regions:
        yield from _table(
            ("region", "verdict", "environment", "wave", "release", "history", "checks passed", "took, up to the gate"),
            [
                (
                    region.region,
                    f"{SIGNS[region.verdict]} {region.verdict.value}",
                    region.environment,
                    str(region.wave),
                    release_words(region),
                    history_words(region),
                    checks_words(region),
                    span(region.course.busy_seconds) if region.course.spans else "",
                )
                for region in regions
            ],
        )
    yield " · ".join(f"{name}: {safe_markdown(value)}" for name, value in facts(run) if value)
    for region in regions:
        yield from _region(region)


def _region(region: RegionReport) -> Iterator[str]:
    place = f" ({safe_markdown(region.environment)})" if region.environment else ""
    yield ""
    yield f"### {SIGNS[region.verdict]} {safe_markdown(region.region)}{place}: {safe_markdown(region.state)}"
    yield ""
    if region.error:
        yield from (f"- {safe_markdown(line)}" for line in error_lines(region.error))
        yield ""
    yield from _checks(region)
    yield from _course(region)
    if region.plan:
        yield from _plan(region.plan)
    yield from _compared(region)
    yield from _calls(region)
    yield from _receipts(region)


def _checks(region: RegionReport) -> Iterator[str]:
    if not region.checks:
        return
    rows = []
    for check in region.checks:
        listed = tuple(unlike(check)) if check.ok is not True else ()
        figures = "; ".join(filter(None, (region.accepted(check), check.detail, *listed)))
        rows.append((check.table, check.check, CHECK_WORDS[check.ok], figures))
    yield from _table(("table", "check", "result", "figures"), rows)


def _course(region: RegionReport) -> Iterator[str]:
    course = region.course
    if not course.spans:
        return
    yield from _table(
        ("phase", "from", "for"), [(each.phase, moment(each.since), span(each.seconds)) for each in course.spans]
    )
    shares = "; ".join(share_words(part, course.account.seconds) for part in course.account.parts if part.seconds)
    yield f"Time: {safe_markdown(shares)}"
    yield ""


def _plan(plan: Plan) -> Iterator[str]:
    if not plan.changes:
        yield "Nothing to do."
        yield ""
        return
    rows = []
    for node in plan.changes:
        price = node.price
        cost = f"{count(price.days, 'day')}, {price.rows:,} rows, {size(price.bytes)}" if price.rows else ""
        rows.append((ACTIONS[node.action].symbol, f"{node.name} ({node.kind})", node.action, node.why, cost))
    yield from _table(("", "node", "action", "why", "cost"), rows)
    for problem in plan.problems:
        yield f"- {problem.severity} {safe_markdown(str(problem))}"
    if plan.problems:
        yield ""


def _compared(region: RegionReport) -> Iterator[str]:
    for check in region.checks:
        if not check.days:
            continue
        shown, (days, differ) = most_telling(check.days), day_counts(check)
        title = f"{check.table}, {check.check}: {count(days, 'day')}, {differ or 'none'} differ"
        rows = [
            (day_label(day.day), f"{day.old:,}", f"{day.new:,}", "equal" if day.equal else "differs", ", ".join(map(column_label, day.columns)))
            for day in shown
        ]  # fmt: skip
        yield from _folded(title, ("day", "live rows", "new rows", "result", "columns that differ"), rows)


def _calls(region: RegionReport) -> Iterator[str]:
    for check in region.checks:
        if check.calls:
            rows = [(call.name, CHECK_WORDS[call.same], *call_figures(call)) for call in check.calls]
            title = f"{check.table}, {count(len(check.calls), 'recorded call')}, live → new"
            yield from _folded(title, CALL_HEADS, rows)


def _receipts(region: RegionReport) -> Iterator[str]:
    rows = []
    for step, group in groupby(region.receipts, key=lambda receipt: receipt.step):
        own = list(group)
        first = own[0]
        came, went = sum(each.rows_in for each in own), sum(each.rows_out for each in own)
        source = f"{first.source} up to version {first.fence}"
        target = f"{first.target} version {first.version}"
        rows.append((step, source, target, f"{len(own):,}", f"{came:,}", f"{went:,}"))
    if rows:
        yield from _folded("Receipts", ("step", "source", "target", "days", "rows in", "rows out"), rows)
    elif region.past_missing:
        yield f"Receipts: {safe_markdown(region.past_missing)}."
        yield ""


def _folded(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table behind its title, unless it is short."""
    if len(rows) <= DAYS_NAMED:
        yield f"**{safe_markdown(title)}**"
        yield ""
        yield from _table(heads, rows)
        return
    yield f"<details><summary>{escaped(title)}</summary>"
    yield ""
    yield from _table(heads, rows)
    yield "</details>"
    yield ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(safe_markdown, row))} |"
    yield ""
