"""A handover as a value, from the views of the regions. Pure: works with answers of agents as well as logs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from console.model.event import RUNNING
from console.model.note import Note
from console.model.tuning import tuned_text
from console.model.watcher import watchers_text
from console.runner import after_promotion
from console.runner.outlook.attention import NeedKind, RegionNeed, attention, upcoming
from console.runner.outlook.forecast import forecast_of
from console.runner.view import RegionView, plan_label
from console.runner.waves import QueuedRegion

NOTES_EACH = 5  # newest notes per region
COMMANDS: Mapping[NeedKind, str] = {
    NeedKind.FAILED: "console retry --region {region}",
    NeedKind.DIFFERS: "console show {rollout} --region {region}",
    NeedKind.BREACH: "console status --region {region}",
    NeedKind.FEED_STOPPED: "console status --region {region}",
    NeedKind.PAUSED: "console resume --region {region}",
    NeedKind.AWAY: "console doctor",
    NeedKind.EXPIRING: "console status --region {region}",
    NeedKind.GATE: "console promote --region {region}",
    NeedKind.WAY_BACK: "console status --region {region}",
    NeedKind.RETRIED: "console show {rollout} --region {region}",
    NeedKind.WAITING: "console show {rollout} --region {region}",
    NeedKind.UNPLANNED: "console plan --region {region}",
    NeedKind.CLEANUP: "console rollback --region {region}",
    NeedKind.ON_HOLD: "console cleanup --region {region} --restore",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDecision:
    """A decision that a person has to make, or may make.

    due      seconds since 1970, UTC; 0 without a date
    then     what happens at that time
    command  that makes the decision, or shows what has to be decided
    now      a person is needed already; else only the date is known
    """

    region: str
    cause: str
    since: float
    due: float
    then: str
    command: str
    now: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFacts:
    """One region: its state, as sentences without its name. environment: "" for none"""

    region: str
    environment: str
    state: str
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftNote:
    """A note, and the region that keeps it."""

    region: str
    rollout: str
    note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class StopCommand:
    """A command, and the activity that it stops."""

    command: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """at: seconds since 1970, UTC; by: its author"""

    pipeline: str
    at: float
    by: str
    decisions: tuple[PendingDecision, ...]
    running: tuple[RegionFacts, ...]
    waiting: tuple[RegionFacts, ...]
    resting: tuple[RegionFacts, ...]
    notes: tuple[LeftNote, ...]
    stop: tuple[StopCommand, ...]


def handover(
    pipeline: str, views: Mapping[str, RegionView], queued: Mapping[str, QueuedRegion], by: str, now: float
) -> Handover:
    """The handover for these views at this moment. queued: regions whose wave has not begun; now: seconds since 1970, UTC"""
    running = [view for view in views.values() if _runs(view) and not _halted(view)]
    waiting = [view for view in views.values() if _halted(view) or view.region.name in queued]
    resting = [view for view in views.values() if view not in running and view not in waiting]
    decisions = [_decision(views, need) for need in attention(views, now)]
    decisions += [replace(_decision(views, need), now=False) for need in upcoming(views, now)]
    return Handover(
        pipeline=pipeline,
        at=now,
        by=by,
        decisions=tuple(decisions),
        running=tuple(_facts(view, _running(view)) for view in running),
        waiting=tuple(_facts(view, _waiting(view, queued.get(view.region.name))) for view in waiting),
        resting=tuple(_facts(view, _resting(view)) for view in resting),
        notes=tuple(_notes(views.values())),
        stop=tuple(_stop(views.values())),
    )


def _runs(view: RegionView) -> bool:
    return view.status.state in RUNNING


def _halted(view: RegionView) -> bool:
    """A rollout is under way there but does not progress: a person, a limit or its gate holds it, or the region does not answer."""
    status = view.status
    if view.link == "unreachable" or status.state == "awaiting-confirmation" or status.held:
        return True
    return _runs(view) and bool(status.why or view.attended is False)


def _decision(views: Mapping[str, RegionView], need: RegionNeed) -> PendingDecision:
    rollout = views[need.region].status.rollout
    return PendingDecision(
        region=need.region,
        cause=need.cause,
        since=need.since,
        due=need.due,
        then=need.then,
        command=COMMANDS[need.kind].format(region=need.region, rollout=rollout),
    )


def _facts(view: RegionView, facts: Iterable[str]) -> RegionFacts:
    state = "unreachable" if view.link == "unreachable" else view.status.shown
    return RegionFacts(
        region=view.region.name, environment=view.region.environment, state=state, facts=tuple(filter(None, facts))
    )


def _running(view: RegionView) -> Iterator[str]:
    status = view.status
    yield f"{status.was or 'nothing'} → {status.release} ({status.rollout})"
    yield from _progress(view)
    running = next((step for step in status.steps if step.state == "running"), None)
    if running:
        yield f"now {running.id} {running.batch}".rstrip()
    yield from _people(view)


def _progress(view: RegionView) -> Iterator[str]:
    status = view.status
    if status.rows_total:
        yield f"{status.percent} %: {status.rows_done:,} of {status.rows_total:,} rows"
    if status.rate:
        yield f"{status.rate:,.0f} rows a second"
    if expected := forecast_of(view, view.heard):
        first, last = (datetime.fromtimestamp(at, UTC) for at in (expected.gate.low, expected.gate.high))
        yield f"expected at its gate between {first:%Y-%m-%d %H:%M}Z and {last:%Y-%m-%d %H:%M}Z"


def _waiting(view: RegionView, queued: QueuedRegion | None) -> Iterator[str]:
    status = view.status
    if view.link == "unreachable":
        yield view.link_why or "no answer"
        yield f"last seen: {view.live} live" if view.live else ""
        return
    if queued and not _halted(view):
        after = f"after {', '.join(queued.after)}" if queued.after else "may begin"
        yield f"wave {queued.wave} has not begun: {after}"
        return
    yield f"{status.was or 'nothing'} → {status.release} ({status.rollout})"
    if status.state == "awaiting-confirmation" and not status.held:
        passed = sum(check.ok is True for check in status.checks)
        yield f"at its gate: {passed} of {len(status.checks)} checks passed"
        for each in view.gate.conditions:
            if each.kind == "check" and each.state == "skipped":
                yield f"{each.name}: inconclusive, accepted by {each.by}"
            elif each.kind != "check":
                yield f"{each.name}: {each.why}"
    yield status.why
    yield f"to do: {status.hint}" if status.hint else ""
    if view.attended is False and not status.held:
        yield "no agent runs there: it does not continue by itself"
    yield from _progress(view)
    yield from _people(view)


def _resting(view: RegionView) -> Iterator[str]:
    status = view.status
    yield f"{view.live} is live" if view.live else "nothing is live"
    yield f"a rollback leads to {view.previous}" if view.previous else ""
    yield "its files declare another release (console plan)" if view.behind else ""
    yield f"last rollout {status.rollout}: {status.shown}" if status.rollout else ""
    for line in after_promotion.lines(view, view.heard):
        yield line.text
    yield "no agent runs there: live rows wait" if view.attended is False and view.live else ""


def _people(view: RegionView) -> Iterator[str]:
    status = view.status
    yield f"accepted by {status.by}" if status.by else ""
    yield f"taken over by {status.taken_by}" if status.taken_by else ""
    yield f"plan {plan_label(view.accepted)}" if view.accepted else ""
    tuned = tuned_text(view.accepted, status.tuned)
    yield f"tuned: {tuned}" if tuned else ""
    watching = watchers_text(view.others_watching)
    yield f"watched by {watching}" if watching else ""


def _notes(views: Iterable[RegionView]) -> list[LeftNote]:
    left_notes = [
        LeftNote(region=view.region.name, rollout=view.status.rollout, note=note)
        for view in views
        for note in view.status.notes[-NOTES_EACH:]
    ]
    return sorted(left_notes, key=lambda left: left.note.at, reverse=True)


def _stop(views: Iterable[RegionView]) -> Iterator[StopCommand]:
    known = [view for view in views if view.link != "unreachable"]
    going = [view.region.name for view in known if _runs(view) and not view.status.held]
    if going:
        yield StopCommand(
            command=f"console pause --regions {','.join(going)}",
            does="stops before the next batch; live feeds continue; `console resume` resumes the rollout",
        )
    under_way = [view.region.name for view in known if _runs(view) or view.status.state == "awaiting-confirmation"]
    if under_way:
        yield StopCommand(
            command=f"console cancel --regions {','.join(under_way)}",
            does="ends the rollouts and drops what they have built; what is live is not touched",
        )
    for view in known:
        if view.previous and view.region.name not in under_way:
            name = view.region.name
            yield StopCommand(
                command=f"console rollback --region {name}", does=f"{view.live} back to {view.previous}, in one commit"
            )
    yield StopCommand(
        command="console follow --stop --region NAME",
        does="ends a region's agent; its rollout and its live feeds stop until the next one starts",
    )
    yield StopCommand(
        command="touch <warehouse>/_console/pause",
        does="on a region's host, without a console: no batch begins there while this file exists",
    )
