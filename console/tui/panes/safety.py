"""Whether it is safe to confirm: checks, doubts, and the way back. Used by a pane and by the gate's dialog."""

from collections.abc import Iterable, Sequence

from textual.content import Content

from console.model.event import Checked, ComparedDay
from console.model.gate import DECLARED, GateCondition, acceptance_of
from console.model.note import NOTE_CHARACTERS, Note
from console.model.plan import ACTIONS, Plan
from console.model.soak import soak_text
from console.model.status import Status
from console.model.tuning import tuned_text
from console.model.watcher import watchers_text
from console.record import dataclass
from console.runner import after_promotion
from console.runner.view import RegionView, plan_label
from console.tui.drawing import NAME_CELLS, safe, wrap_indented
from console.tui.format import count, plural, span
from console.tui.labels import STYLES, Tone, feed_trouble, status_label, under_way
from console.tui.panes.checks import promotion_blocker, verdict
from console.tui.panes.plan import TONE_STYLES, column_changes, option_text
from console.tui.panes.summary import lag_text, way_back_proof

MAX_DOUBTS, MAX_TABLES, MAX_CHANGES, MAX_OTHERS = 6, 40, 40, 6
MAX_NOTES = 3
MAX_DAYS = 400
CHECKS_OLD_SECONDS = 1800.0  # after which the age of the checks is a doubt
EQUAL, DIFFERS = "▪", "✗"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One reason to look again before confirming. text: from outside, draw it through `safe`"""

    text: str
    tone: Tone = "warn"


def doubts(view: RegionView, others: Sequence[RegionView], now: float) -> list[Doubt]:
    """Reasons against confirming, the gravest first; [] only if every check passed and nothing else is known."""
    status, plan = view.status, view.accepted
    doubts = [
        Doubt(
            text=f"{check.table} · {check.check} {verdict(check).text}{_accepted(status, check)}: {check.detail}",
            tone=verdict(check).tone,
        )
        for check in sorted(status.checks, key=lambda check: check.ok is None)
        if check.ok is not True
    ]
    if not status.checks:
        doubts.append(Doubt(text=promotion_blocker(status) or "nothing was compared: the plan moves no history"))
    if view.link == "unreachable":
        doubts.append(Doubt(text=f"the region does not answer: {view.link_why or 'no reason given'}", tone="bad"))
    if trouble := feed_trouble(view):
        doubts.append(Doubt(text=trouble, tone="bad" if status.standing else "warn"))
    if status.quarantined and not quarantine_explained(status):
        doubts.append(Doubt(text=f"{count(status.quarantined)} rows did not convert and were left out"))
    if status.checked_at and now - status.checked_at > CHECKS_OLD_SECONDS:
        doubts.append(Doubt(text=f"the checks are {span(now - status.checked_at)} old"))
    doubts += [Doubt(text=text) for text in _losses(view, plan)]
    doubts += [Doubt(text=text) for other in others if (text := _breach(other))]
    return doubts


def confirm_title(view: RegionView, others: Sequence[RegionView], now: float) -> str:
    """`is it safe to confirm? no, 1 of 4 checks differ`: the question with its answer in a few words."""
    status, question = view.status, "is it safe to confirm?"
    if status.state != "awaiting-confirmation":
        return f"{question} nothing to confirm yet" if under_way(view) else question
    if view.link == "unreachable":
        return f"{question} unknown, the region does not answer"
    if blocker := promotion_blocker(status):
        return f"{question} {'no' if any(check.ok is False for check in status.checks) else 'in doubt'}, {blocker}"
    against = doubts(view, others, now)
    return (
        f"{question} {plural(len(against), 'doubt')} to weigh" if against else f"{question} nothing speaks against it"
    )


def _accepted(status: Status, check: Checked) -> str:
    by = acceptance_of(status.consent, check)
    return f", accepted by {by.by} ({by.reason})" if by else ""


def quarantine_explained(status: Status) -> bool:
    """Whether the comparison has subtracted all rows in quarantine, and is equal without them."""
    tallies = [check.tally for check in status.checks if check.tally is not None]
    return not any(tally.differing for tally in tallies) and status.quarantined <= sum(t.quarantined for t in tallies)


def safety_lines(view: RegionView, others: Sequence[RegionView], width: int, now: float) -> list[Content]:
    """The answer: tally and age of the checks, doubts, plan, way back, other regions, who decides; then table by table.

    others  regions with the same plan, see `same_plan`
    """
    status = view.status
    against = doubts(view, others, now)
    lines = _named("checks", checks_line(view, now), width)
    if status.soak is not None:
        lines += _named("since then", safe(soak_text(status.soak, now), limit=300), width)
    for number, line in enumerate(after_promotion.lines(view, now)):
        lines += _named("since promoted" if not number else "", safe(line.text, STYLES[line.tone], 500), width)
    for number, doubt in enumerate(against[:MAX_DOUBTS]):
        text = Content.assemble(
            ("! " if doubt.tone == "warn" else "✗ ", STYLES[doubt.tone]), safe(doubt.text, STYLES[doubt.tone])
        )
        lines += _named("doubts" if not number else "", text, width)
    if not against:
        lines += _named("doubts", Content.styled("none known", STYLES["good"]), width)
    if len(against) > MAX_DOUBTS:
        lines += _named("", Content(f"and {len(against) - MAX_DOUBTS} more"), width)
    lines += _named("release", _moved(view), width)
    lines += _named(f"plan {plan_label(view.accepted)}" if view.accepted else "plan", _changes(view.accepted), width)
    if tuned := tuned_text(view.accepted, status.tuned):
        lines += _named("tuned", safe(tuned, limit=300), width)
    lines += _named("way back", _way_back(view), width)
    if view.previous and status.way_back is not None:
        until_then = Content.assemble("until then ", safe(view.previous, limit=60), ": ", way_back_proof(view, now))
        lines += _named("", until_then, width)
    lines += _named("elsewhere", _elsewhere(view, others, now), width)
    lines += _named("who", _who(view), width)
    for condition in view.gate.conditions:
        if condition.kind != "check":
            lines += _named(condition.name, _declared(condition), width)
    for number, note in enumerate(reversed(status.notes[-MAX_NOTES:])):
        lines += _named("note" if not number else "", _note_text(note, now), width)
    for number, text in enumerate(_histories(view.accepted)):
        lines += _named("history" if not number else "", text, width)
    for table, checks in list(_by_table(status.checks).items())[:MAX_TABLES]:
        lines += _named(table, _table_text(checks, width - NAME_CELLS), width)
    return lines


def _moved(view: RegionView) -> Content:
    """`r1 → r2 in one commit · 466,830 rows moved · lag 0.4 s`."""
    status = view.status
    was, to = safe(status.was or view.live or "nothing", limit=60), safe(status.release, "bold", 60)
    moved = f"{count(status.rows_done)} rows moved" if status.rows_done else "no history moved"
    return Content.assemble(
        was, " → ", to, f" in one commit · {moved} · {lag_text(view, rows=False) or 'no lag measured'}"
    )


def checks_line(view: RegionView, now: float) -> Content:
    """`9 of 9 passed, 40 s ago`, or how many differ and how many are inconclusive."""
    checks = view.status.checks
    if not checks:
        return Content.styled("none has run", STYLES["warn"])
    passed = sum(check.ok is True for check in checks)
    differ, unclear = sum(check.ok is False for check in checks), sum(check.ok is None for check in checks)
    tone: Tone = "bad" if differ else "warn" if unclear else "good"
    parts = [f"{passed} of {len(checks)} passed"]
    parts += [f"{differ} {'differs' if differ == 1 else 'differ'}"] if differ else []
    parts += [f"{unclear} inconclusive"] if unclear else []
    age = f", {span(max(0.0, now - view.status.checked_at))} ago" if view.status.checked_at else ", age unknown"
    live = sum(check.rows for check in checks)
    recomputed = f"; {count(live)} live rows computed again" if live else ""
    return Content.assemble((f"{'✓ ' if tone == 'good' else ''}{', '.join(parts)}", STYLES[tone]), f"{age}{recomputed}")


def day_lines(view: RegionView, width: int) -> list[Content]:
    """Every day's comparison, table by table: the days that differ with their figures, the others as a strip."""
    lines: list[Content] = []
    for table, checks in _by_table(view.status.checks).items():
        for check in checks:
            if not check.days:
                continue
            lines.append(Content.assemble(safe(table, "bold", 80), " · ", safe(check.check, limit=80), _tally(check)))
            lines += [line for day in reversed(check.days[-MAX_DAYS:]) for line in _day_line(day, width)]
    return lines or [Content("no comparison day by day: aggregates are compared group by group, see the checks.")]


def _tally(check: Checked) -> str:
    """` · 3 of 14 days differ`; where not all days are listed, the number of the others."""
    if check.tally is None:
        return ""
    unlisted = check.tally.days - len(check.days)
    more = f", {count(unlisted)} not listed: show ID --days" if unlisted > 0 else ""
    return f" · {count(check.tally.differing)} of {plural(check.tally.days, 'day')} differ{more}"


def _day_line(day: ComparedDay, width: int) -> list[Content]:
    name = f"{day.day or 'no day':<12}"
    if day.equal:
        return [
            Content.assemble(
                (f"{EQUAL} ", STYLES["good"]),
                safe(name, limit=20),
                (f"{count(day.new):>14} rows, equal", "$text-muted"),
            )
        ]
    more = f" and {day.more} more" if day.more else ""
    columns = f"; differ: {', '.join(day.columns)}{more}" if day.columns else ""
    rows = f"{count(day.old):>14} → {count(day.new)} rows" if day.old != day.new else f"{count(day.new):>14} rows"
    text = Content.assemble(
        (f"{DIFFERS} ", STYLES["bad"]), safe(name, limit=20), safe(f"{rows}{columns}", STYLES["bad"])
    )
    first, *rest = text.wrap(max(20, width - 4))
    return [first, *(Content.assemble("    ", line) for line in rest)]


def day_strip(days: Sequence[ComparedDay], width: int) -> Content:
    """`11-22 ▪▪▪✗▪▪ 11-09`, newest first; days that do not fit are counted."""
    newest = list(reversed(days))
    first, last = (_short_day(day) for day in (newest[0], newest[-1]))
    room = max(1, width - len(first) - len(last) - 2)
    shown = newest if len(newest) <= room else newest[: max(1, room - 6)]
    marks = [
        Content.styled(EQUAL, STYLES["good"]) if day.equal else Content.styled(DIFFERS, STYLES["bad"]) for day in shown
    ]
    more = f"+{len(newest) - len(shown)}" if len(newest) > len(shown) else ""
    return Content.assemble(f"{first} ", *marks, more, f" {last}")


def _short_day(day: ComparedDay) -> str:
    return day.day[5:10] if len(day.day) == 10 else (day.day[:14] or "no day")


def _table_text(checks: Sequence[Checked], width: int) -> Content:
    """The strip of its days, and which checks passed."""
    parts = []
    if days := next((check.days for check in checks if check.days), ()):
        parts.append(day_strip(days, min(width, 40)))
    for check in checks:
        label = verdict(check)
        parts.append(safe(f"{label.symbol} {check.check}", label.style, 60))
    return Content("  ").join(parts)


def _by_table(checks: Iterable[Checked]) -> dict[str, list[Checked]]:
    by_table: dict[str, list[Checked]] = {}
    for check in checks:
        by_table.setdefault(check.table, []).append(check)
    return by_table


def _named(name: str, content: Content, width: int) -> list[Content]:
    """`checks     9 of 9 passed`, wrapped below its text; a long name has a line of its own."""
    head = safe(name, "$text-muted", 60)
    lines = wrap_indented(content, NAME_CELLS, width)
    if head.cell_length >= NAME_CELLS:
        return [head.truncate(width, ellipsis=True), *lines]
    return [Content.assemble(head, " " * (NAME_CELLS - head.cell_length), lines[0][NAME_CELLS:]), *lines[1:]]


def _changes(plan: Plan | None) -> Content:
    # not the pending plan, which differs if the files have changed since
    changes = plan.changes if plan else ()
    parts = [
        Content.assemble(
            (f"{ACTIONS[node.action].symbol} ", TONE_STYLES[ACTIONS[node.action].tone]),
            safe(node.name, limit=60),
            Content.assemble(" ", column_changes(node.columns, 4)) if node.columns else "",
        )
        for node in changes[:MAX_CHANGES]
    ]
    return Content(" · ").join(parts) if parts else Content("as accepted")


def _histories(plan: Plan | None) -> list[Content]:
    """The choices for existing rows: the one taken, and the amounts that the others would have moved; and columns that are
    computed at read until older rows expire."""
    if plan is None:
        return []
    nodes = [node for node in plan.changes if node.options][:MAX_TABLES]
    options = [
        Content.assemble(safe(node.name, limit=60), " · ", "taken " if option.chosen else "", option_text(option))
        for node in nodes
        for option in node.options
    ]
    return options + [safe(text, limit=300) for text in plan.read_until_expiry[:MAX_TABLES]]


def _way_back(view: RegionView) -> Content:
    was, hours = view.status.was or view.live, view.region.policy.rollback_window_hours
    if not was or hours <= 0:
        return Content.styled("none: there is no previous release to return to", STYLES["warn"])
    plan = view.accepted
    lossless = "; a rollback (R) loses nothing" if plan and plan.rollback.lossless else ""
    return Content.assemble(safe(was, limit=60), f", kept up to date for {span(hours * 3600)}{lossless}")


def _losses(view: RegionView, plan: Plan | None) -> list[str]:
    """Losses of a rollback, and losses accepted by name."""
    if plan is None:
        return []
    losses = [f"loss accepted by name: {name}" for name in plan.allowed]
    losses += plan.chosen_history
    if not plan.rollback.lossless:
        lost = ", ".join(plan.rollback.columns) or "no stored rows, but does not restore everything"
        losses.append(f"a rollback loses {lost}: {plan.rollback.why}")
    return losses


def _breach(other: RegionView) -> str:
    """A failure of this plan in another region; "" if none is known."""
    name, status = other.region.name, other.status
    if status.state == "rolled-back":
        return f"{name} has run this plan and was rolled back" + (
            f" by {status.decided_by}" if status.decided_by else ""
        )
    if status.held == "failed":
        return f"{name} has failed with this plan: {status.why}"
    if status.standing:
        return f"{name} runs this plan, and {feed_trouble(other)}"
    if any(check.ok is False for check in status.checks):
        return f"{name} runs this plan, and its checks differ"
    return ""


def _elsewhere(view: RegionView, others: Sequence[RegionView], now: float) -> Content:
    if view.accepted is None:
        return Content.styled("unknown: the region has not sent its plan", "$text-muted")
    if not others:
        return Content("no other region has run this plan")
    parts = [_other_text(other, now) for other in others[:MAX_OTHERS]]
    if len(others) > MAX_OTHERS:
        parts.append(Content(f"{len(others) - MAX_OTHERS} more"))
    return Content(" · ").join(parts)


def _other_text(other: RegionView, now: float) -> Content:
    status, name = other.status, safe(other.region.name, "bold", 60)
    if status.state == "live":
        since = f" for {span(max(0.0, now - status.changed))}" if status.changed else ""
        feeds = plural(len(status.ailing), "feed fails", "feeds fail") if status.ailing else "no feed fails"
        return Content.assemble(name, f" live{since}, {feeds}")
    return Content.assemble(name, " ", safe(status_label(status).text, limit=40))


def _declared(condition: GateCondition) -> Content:
    """The declarations, made and missing, marked as a record and not access control."""
    missing = condition.state != "passed"
    text = safe(condition.why, STYLES["warn"] if missing else STYLES["good"], 300)
    named = safe(f" named by {condition.by}", limit=120) if condition.kind == "ticket" and condition.by else ""
    record = (" · a record, not access control", "$text-muted") if condition.kind in DECLARED else ""
    return Content.assemble(text, named, record)


def _note_text(note: Note, now: float) -> Content:
    age = f", {span(max(0.0, now - note.at))} ago"
    return Content.assemble(safe(note.text, "bold", 2 * NOTE_CHARACTERS), safe(f"  by {note.by}", limit=120), age)


def _who(view: RegionView) -> Content:
    status = view.status
    parts = [safe(f"accepted by {status.by}", limit=120)] if status.by else []
    if status.taken_by:
        parts.append(safe(f"taken over by {status.taken_by}", limit=120))
    if others := watchers_text(view.others_watching):
        parts.append(safe(f"also looks: {others}", "$text-warning", 200))
    elif status.watchers is not None:
        parts.append(Content.styled("nobody else looks", "$text-muted"))
    return Content(" · ").join(parts) if parts else Content.styled("nobody is named", "$text-muted")
