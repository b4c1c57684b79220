"""A run as one self-contained page of HTML: no script, no address, and a single style, allowed by its hash in the page's policy."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby

from console.cli.format import count, size, span
from console.cli.reports.charts import CLASSES, days, days_label, swatch, timeline
from console.cli.reports.run_report import RegionReport, RegionVerdict, RunReport, ordered
from console.cli.reports.style import STYLE
from console.cli.reports.words import (
    CALL_HEADS,
    CHECK_VERDICTS,
    CHECK_WORDS,
    ROWS_SHOWN,
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
    short_moments,
    unlike,
)
from console.errors import Problem
from console.markup import Element, element, html
from console.model.calendar import StepDays
from console.model.decisions import decisions
from console.model.event import Checked
from console.model.identity import identity
from console.model.plan import ACTIONS, NodeChange, Plan
from console.model.receipt import Receipt
from console.runner.view import plan_label

Cell = Element | str
_TONES = {
    RegionVerdict.PASSED: "good", RegionVerdict.AT_GATE: "wait", RegionVerdict.INCONCLUSIVE: "doubt", RegionVerdict.FAILED: "bad",
    RegionVerdict.UNFINISHED: "doubt", RegionVerdict.SKIPPED: "calm",
}  # fmt: skip
_SIGNS = {
    RegionVerdict.PASSED: "✓", RegionVerdict.AT_GATE: "◆", RegionVerdict.INCONCLUSIVE: "?", RegionVerdict.FAILED: "✗", RegionVerdict.UNFINISHED: "…",
    RegionVerdict.SKIPPED: "–",
}  # fmt: skip


def page(run: RunReport) -> str:
    """The whole page: regions that need attention first."""
    regions = ordered(run.regions)
    title = f"{run.pipeline or 'console'}: {headline(run)}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", STYLE),
    )
    body = element(
        "body",
        element("header", element("h1", run.pipeline or "console"), element("p", headline(run), class_="headline")),
        element("main", *_overview(run, regions), *(_region(region, at) for at, region in enumerate(regions, 1))),
    )
    return html(element("html", head, body, lang="en"))


def _policy() -> str:
    """Nothing is loaded, run, framed or sent; the page's own style alone is applied."""
    style = b64encode(sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"


def _overview(run: RunReport, regions: Sequence[RegionReport]) -> Iterator[Element]:
    if run.error:
        yield element("section", element("h2", "What ended the run"), *_paragraphs(error_lines(run.error), "bad"))
    rows = [
        (
            element("a", region.region, href=f"#region-{at}"),
            _badge(region.verdict),
            region.environment,
            str(region.wave),
            release_words(region),
            history_words(region),
            checks_words(region),
            span(region.course.busy_seconds) if region.course.spans else "",
        )
        for at, region in enumerate(regions, 1)
    ]
    heads = ("region", "verdict", "environment", "wave", "release", "history", "checks passed", "took, up to the gate")
    inner = [element("h2", "Regions"), _table(heads, rows, stacked=True)] if rows else []
    inner.append(element("p", *_joined(f"{name}: {value}" for name, value in facts(run) if value), class_="facts"))
    yield element("section", *inner)


def _region(region: RegionReport, at: int) -> Element:
    place = f" ({region.environment})" if region.environment else ""
    parts: list[Element] = [
        element("h2", f"{region.region}{place} ", _badge(region.verdict)),
        element("p", f"{region.state}; {release_words(region) or 'nothing is live'} {region.rollout}".rstrip()),
    ]
    if region.error:
        parts += _paragraphs(error_lines(region.error), _TONES[region.verdict])
    parts += [*_course(region), *_checks(region), *_compared(region), *_calls(region)]
    if region.plan:
        parts.append(_plan(region.plan))
    parts += [*map(_history, region.course.days), *_receipts(region), *_decisions(region)]
    return element("section", *parts, id=f"region-{at}", class_="region")


def _course(region: RegionReport) -> Iterator[Element]:
    course = region.course
    if not course.spans:
        return
    yield element("h3", "Timeline")
    yield timeline(course, f"{region.region}: phases of {region.rollout}, {span(course.seconds)}")
    yield element(
        "ul",
        *(
            element("li", swatch(CLASSES[each.phase]), f" {each.phase} {span(each.seconds)}, from {since}")
            for each, since in zip(course.spans, short_moments([each.since for each in course.spans]), strict=True)
        ),
        class_="legend",
    )
    shares = (share_words(part, course.account.seconds) for part in course.account.parts if part.seconds)
    yield element("p", "Time: ", *_joined(shares), class_="facts")


def _checks(region: RegionReport) -> Iterator[Element]:
    if not region.rollout:
        return
    yield element("h3", "Checks")
    if not region.checks:
        yield element("p", "None was made: no table was rebuilt, or the rollout has not come so far.")
        return
    rows = [(check.table, check.check, _badge(CHECK_VERDICTS[check.ok], CHECK_WORDS[check.ok]), _detail(check, region.accepted(check))) for check in region.checks]  # fmt: skip
    yield _table(("table", "check", "result", "figures"), rows, prose=(3,), stacked=True)


def _detail(check: Checked, accepted: str) -> Element:
    """The figures, who accepted them, and each differing day and call."""
    listed = [element("li", line) for line in unlike(check)] if check.ok is not True else []
    detail = "; ".join(filter(None, (accepted, check.detail)))
    return element("div", detail, *([element("ul", *listed)] if listed else []))


def _compared(region: RegionReport) -> Iterator[Element]:
    """Each table day by day: a column of a chart and a row of a table for each day."""
    for check in region.checks:
        if not check.days:
            continue
        shown = most_telling(check.days)
        yield element("h3", f"Day by day: {check.table}, {check.check}")
        yield days(shown, days_label(check.table, shown))
        compared, differ = day_counts(check)
        more = count(compared - len(check.days), "more day")
        unlisted = f"; {more} not listed, {differ} of {compared} differ" if compared > len(check.days) else ""
        yield element("p", days_label(check.table, check.days) + unlisted, class_="facts")
        rows = [
            (day_label(day.day), _badge(CHECK_VERDICTS[day.equal], "equal" if day.equal else "differs"), f"{day.old:,}", f"{day.new:,}",
             ", ".join(map(column_label, day.columns)))
            for day in shown
        ]  # fmt: skip
        yield _folded(
            f"{count(len(shown), 'day')} of {check.table}",
            _table(("day", "result", "live rows", "new rows", "columns that differ"), rows, figures=(2, 3), prose=(4,)),
        )


def _calls(region: RegionReport) -> Iterator[Element]:
    """Recorded calls, live → new: their answers and costs."""
    for check in region.checks:
        if check.calls:
            yield element("h3", f"Recorded calls of {check.table}, live → new")
            rows = [(call.name, _badge(CHECK_VERDICTS[call.same], CHECK_WORDS[call.same]), *call_figures(call)) for call in check.calls]  # fmt: skip
            yield _table(CALL_HEADS, rows, figures=(2, 3, 4, 5), stacked=True)


def _plan(plan: Plan) -> Element:
    heads = ("sign", "node", "action", "why", "days", "rows", "read", "written")
    rows = [_node(node) for node in plan.changes]
    inner: list[Element] = (
        [_table(heads, rows, figures=(4, 5, 6, 7), prose=(3,), stacked=True)]
        if rows
        else [element("p", "Nothing to do.")]
    )
    if plan.problems:
        inner.append(element("ul", *(element("li", *_problem(problem)) for problem in plan.problems)))
    back = plan.rollback
    lossless = "A rollback after the promotion loses nothing."
    text = lossless if back.lossless else f"A rollback loses {', '.join(back.columns)}: {back.why}"
    if rows:
        inner.append(element("p", text))
    if plan.answers:
        owners = ((each.name, each.kind, each.owner, each.why) for each in plan.answers)
        inner += [
            element("h3", "Results that change"),
            _table(("node", "kind", "owner", "why"), list(owners), prose=(3,), stacked=True),
        ]
    return _folded(f"Plan {plan_label(plan)}: {count(len(plan.changes), 'change')}", *inner, opened=bool(rows))


def _node(node: NodeChange) -> tuple[Cell, ...]:
    price = node.price
    figures = (f"{price.days}", f"{price.rows:,}", size(price.bytes), size(price.written)) if price.rows else ("",) * 4
    return (ACTIONS[node.action].symbol, f"{node.name} ({node.kind})", node.action, node.why, *figures)


def _problem(problem: Problem) -> Iterator[Cell]:
    yield element("strong", f"{problem.severity} {problem.code}")
    yield f" {problem.message}"
    if problem.where or problem.hint:
        yield element("br")
        yield "; ".join(filter(None, (problem.where, problem.hint)))


def _history(step: StepDays) -> Element:
    """The days of a backfill, with the outcome of each."""
    rows = []
    for day in step.days[:ROWS_SHOWN]:
        seconds, estimated = step.took(day)
        took = f"{'~' if estimated else ''}{span(seconds)}" if day.batch else ""
        rows.append((day.label, f"{day.rows:,}", day.state, str(day.tries or ""), took))
    left = f", the newest {ROWS_SHOWN} of them" if len(step.days) > ROWS_SHOWN else ""
    done = sum(day.state in ("done", "retried") for day in step.days)
    title = f"History of {step.step}: {done} of {count(len(step.days), 'day')}{left}"
    return _folded(title, _table(("day", "rows, estimated", "state", "failed tries", "took"), rows, figures=(1, 3, 4)))


def _receipts(region: RegionReport) -> Iterator[Element]:
    if region.past_missing and not region.receipts:
        yield element("p", f"Receipts: {region.past_missing}.", class_="facts")
    for step, receipts in groupby(region.receipts, key=lambda receipt: receipt.step):
        yield _step_receipts(step, list(receipts))


def _step_receipts(step: str, receipts: list[Receipt]) -> Element:
    first, shown = receipts[0], receipts[-ROWS_SHOWN:]
    rows = [
        (day_label(each.day), f"{each.rows_in:,}", f"{each.rows_out:,}", each.checksum_in or "–", each.checksum_out or "–")
        for each in shown
    ]  # fmt: skip
    came, went = sum(each.rows_in for each in receipts), sum(each.rows_out for each in receipts)
    title = f"Receipts of {step}: {count(len(receipts), 'day')}, {came:,} rows in, {went:,} out"
    place = f"{first.source} up to version {first.fence} → {first.target} version {first.version}, position {first.position}"
    left = f" The newest {ROWS_SHOWN} are listed." if len(receipts) > ROWS_SHOWN else ""
    heads = ("day", "rows in", "rows out", "checksum in", "checksum out")
    return _folded(title, element("p", place + left), _table(heads, rows, figures=(1, 2)))


def _decisions(region: RegionReport) -> Iterator[Element]:
    rows = [(moment(each.at), each.what, identity(each.by).name, each.host) for each in decisions(region.events)]
    if rows:
        yield _folded(
            f"Who did what: {count(len(rows), 'entry', 'entries')}",
            _table(("when", "what", "who", "from"), rows, prose=(1,), stacked=True),
        )


def _badge(verdict: RegionVerdict, word: str = "") -> Element:
    return element("span", f"{_SIGNS[verdict]} {word or verdict.value}", class_=f"badge {_TONES[verdict]}")


def _paragraphs(lines: Iterable[str], tone: str) -> list[Element]:
    return [element("p", line, class_=f"line {tone}") for line in lines]


def _joined(texts: Iterable[str]) -> Iterator[Element]:
    """Texts that break between, not within themselves."""
    for text in texts:
        yield element("span", f"{text} ", class_="fact")


def _folded(title: str, *inner: Element, opened: bool = False) -> Element:
    return element("details", element("summary", title), *inner, open=opened or "")


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    figures: Sequence[int] = (),
    prose: Sequence[int] = (),
    stacked: bool = False,
) -> Element:
    """A table that scrolls sideways by itself on a narrow screen.

    figures  columns set flush right;  prose  columns whose lines break
    stacked  on a narrow screen each row is a list instead, its cells below each other with their heads
    """
    kinds = ["figure" if at in figures else "prose" if at in prose else "" for at in range(len(heads))]
    tops = (element("th", head, scope="col", class_=kind) for head, kind in zip(heads, kinds, strict=True))
    lines = (
        element(
            "tr",
            *(
                element("td", cell, class_=kind, data_label=head if stacked and cell != "" else "")
                for cell, head, kind in zip(row, heads, kinds, strict=True)
            ),
        )
        for row in rows
    )
    inner = element("table", element("thead", element("tr", *tops)), element("tbody", *lines))
    return element("div", inner, class_="wide stack" if stacked else "wide")
