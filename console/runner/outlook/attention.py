"""Needs of a person's attention, judged from the views alone: gates, failures, stopped feeds, pauses, unreachable regions, due dates."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto

from console.model.breach import breach_text
from console.model.event import RUNNING, Logged
from console.model.gate import unaccepted
from console.model.incident import TryFailed
from console.model.policy import kept_hours
from console.record import dataclass
from console.runner import after_promotion
from console.runner.view import RegionView

HOUR = 3600.0
SOON_SECONDS = 24 * HOUR  # nearer due dates need a person even while everything works


class NeedKind(Enum):
    """Why a region needs a person, the most urgent first."""

    FAILED = auto()
    DIFFERS = auto()  # a check found a difference
    BREACH = auto()  # a check failed after the promotion
    FEED_STOPPED = auto()
    PAUSED = auto()
    AWAY = auto()
    EXPIRING = auto()  # files that a running rollout reads may soon be deleted
    GATE = auto()
    WAY_BACK = auto()  # a rollback would not work
    RETRIED = auto()  # tries of a batch failed, and it continues with smaller ones
    WAITING = auto()  # a rollout waits by itself: throttled, or outside its hours
    UNPLANNED = auto()
    CLEANUP = auto()  # the rollback window ends
    ON_HOLD = auto()  # a release on hold will be dropped


KEYS: Mapping[NeedKind, tuple[str, str]] = {
    NeedKind.FAILED: ("t", "retry"),
    NeedKind.DIFFERS: ("4", "gate"),
    NeedKind.BREACH: ("enter", "why"),
    NeedKind.FEED_STOPPED: ("enter", "why"),
    NeedKind.PAUSED: ("p", "resume"),
    NeedKind.AWAY: ("r", "reach it"),
    NeedKind.EXPIRING: ("2", "rollout"),
    NeedKind.GATE: ("4", "gate"),
    NeedKind.WAY_BACK: ("enter", "why"),
    NeedKind.RETRIED: ("2", "why slow"),
    NeedKind.WAITING: ("2", "why slow"),
    NeedKind.UNPLANNED: ("r", "refresh"),
    NeedKind.CLEANUP: ("R", "back, while it is possible"),
    NeedKind.ON_HOLD: ("enter", "what happened"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionNeed:
    """A reason for a person to look at a region.

    cause  the reason, in words from the region's own events
    since  seconds since 1970, UTC; 0 if unknown
    due    by when it must be decided (seconds since 1970, UTC); 0 without a date
    then   what happens at that time
    """

    kind: NeedKind
    region: str
    cause: str
    since: float = 0.0
    due: float = 0.0
    then: str = ""

    @property
    def key(self) -> str:
        """The key that applies."""
        return KEYS[self.kind][0]

    @property
    def does(self) -> str:
        """The effect of the key."""
        return KEYS[self.kind][1]


def attention(views: Mapping[str, RegionView], now: float) -> tuple[RegionNeed, ...]:
    """All needs: the nearest due date first, then the longest wait.

    now  seconds since 1970, UTC
    """
    needs = [need for view in views.values() for need in _needs(view, now)]
    return tuple(sorted(needs, key=_urgency))


class Attention:
    """`attention` over immutable views: judges only those again that were replaced, or whose needs
    may have changed with time.
    """

    def __init__(self) -> None:
        self._judged: dict[str, _Judged] = {}

    def of(self, views: Mapping[str, RegionView], now: float) -> tuple[RegionNeed, ...]:
        if len(self._judged) > len(views):
            self._judged = {name: judged for name, judged in self._judged.items() if name in views}
        needs = [need for name, view in views.items() for need in self._of(name, view, now)]
        return tuple(sorted(needs, key=_urgency))

    def _of(self, name: str, view: RegionView, now: float) -> tuple[RegionNeed, ...]:
        known = self._judged.get(name)
        if known is None or known.view is not view or not known.since <= now < known.until:
            later = (moment for moment in _moments(view) if moment >= now)
            known = _Judged(
                view=view, since=now, until=min(later, default=float("inf")), needs=tuple(_needs(view, now))
            )
            self._judged[name] = known
        return known.needs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """Needs of one view, and the time for which they hold."""

    view: RegionView
    since: float
    until: float
    needs: tuple[RegionNeed, ...]


def _moments(view: RegionView) -> Iterator[float]:
    """When the passing of time alone changes the needs of a view."""
    if view.status.reads_until:
        yield view.status.reads_until - HOUR
    for need in _dates(view):
        yield from (need.due - SOON_SECONDS, need.due)


def upcoming(views: Mapping[str, RegionView], now: float) -> tuple[RegionNeed, ...]:
    """Due dates that do not need a person yet, the nearest first."""
    dates = [need for view in views.values() for need in _dates(view) if need.due > now + SOON_SECONDS]
    return tuple(sorted(dates, key=_urgency))


def well_since(views: Mapping[str, RegionView]) -> float:
    """When the last decision or change of a region was stored (seconds since 1970, UTC); 0 if none is known."""
    return max((view.status.changed for view in views.values()), default=0.0)


def troubled(needs: Iterable[RegionNeed]) -> frozenset[str]:
    """The regions of these needs, except those that wait at a gate without trouble."""
    fine = (NeedKind.GATE, NeedKind.WAITING, NeedKind.CLEANUP, NeedKind.ON_HOLD)
    return frozenset(need.region for need in needs if need.kind not in fine)


def _urgency(need: RegionNeed) -> tuple[bool, float, float, int]:
    return not need.due, need.due, need.since or float("inf"), need.kind.value


def _needs(view: RegionView, now: float) -> Iterator[RegionNeed]:
    region, status = view.region.name, view.status
    if view.link == "unreachable":
        risk = "; a batch may be running" if not status.held and status.state in RUNNING else ""
        yield RegionNeed(
            kind=NeedKind.AWAY, region=region, cause=f"{view.link_why or 'no answer'}{risk}", since=view.heard
        )
    if status.standing:
        yield _stopped_feed(view)
    elif (proof := status.way_back) is not None and proof.release == view.previous and proof.state == "failed":
        cause = f"the way back to {proof.release} failed its proof: {proof.reason}"
        yield RegionNeed(kind=NeedKind.WAY_BACK, region=region, cause=cause, since=proof.at)
    match status.held:
        case "failed":
            hours = view.region.policy.keep_failed_hours
            yield RegionNeed(
                kind=NeedKind.FAILED,
                region=region,
                cause=status.why,
                since=status.changed,
                due=status.changed + hours * HOUR if status.changed else 0.0,
                then="what it built is discarded",
            )
        case "paused":
            yield RegionNeed(
                kind=NeedKind.PAUSED,
                region=region,
                cause=status.why or "paused",
                since=status.changed,
                due=status.reads_until,
                then="the history it reads may be deleted" if status.reads_until else "",
            )
        case _:
            yield from _going(view, now)


def _going(view: RegionView, now: float) -> Iterator[RegionNeed]:
    """Needs of a region that is neither paused nor failed."""
    region, status = view.region.name, view.status
    if status.state == "awaiting-confirmation":
        yield _gate(view)
    elif status.state in RUNNING:
        if status.reads_until and (status.expiring or status.reads_until - now < HOUR):
            until, then = status.reads_until, "the history it reads may be deleted"
            cause = f"{status.state}: it may not have read its history in time"
            yield RegionNeed(
                kind=NeedKind.EXPIRING, region=region, cause=cause, since=status.started, due=until, then=then
            )
        if tries := sum(step.tries for step in status.steps if step.state == "running"):
            yield RegionNeed(kind=NeedKind.RETRIED, region=region, cause=_tries(view, tries), since=_last_try(view))
        if status.why:
            since = status.waiting.since if status.waiting else status.changed
            yield RegionNeed(kind=NeedKind.WAITING, region=region, cause=status.why, since=since)
    elif (need := _after_promotion(view)) is not None:
        yield need
    elif view.problem:
        yield RegionNeed(kind=NeedKind.UNPLANNED, region=region, cause=view.problem)
    yield from (need for need in _dates(view) if now < need.due <= now + SOON_SECONDS)


def _failed_tries(view: RegionView) -> list[tuple[float, TryFailed]]:
    return [
        (recorded.at, recorded.event.incident)
        for recorded in view.events
        if isinstance(recorded.event, Logged) and isinstance(recorded.event.incident, TryFailed)
    ]


def _last_try(view: RegionView) -> float:
    return max((at for at, _ in _failed_tries(view)), default=0.0)


def _tries(view: RegionView, number: int) -> str:
    """`batch 11-16 failed 2 times: memory; now at most 62,500 rows`."""
    times = "once" if number == 1 else f"{number} times"
    if not (failed := _failed_tries(view)):
        return f"batches failed {times}, and it continues"
    _, last = failed[-1]
    smaller = f"; now at most {last.rows_next:,} rows" if last.rows_next else ""
    return f"batch {last.label} failed {times}: {last.cause}{smaller}"


def _gate(view: RegionView) -> RegionNeed:
    status, checks = view.status, view.status.checks
    wrong = [check for check in checks if check.ok is False]
    unclear = unaccepted(status)
    waits = next((each for each in view.gate.closed_by if each.state == "waiting"), None)
    kind = NeedKind.DIFFERS if wrong else NeedKind.GATE
    if wrong or unclear:
        first = (wrong or unclear)[0]
        word = "differ" if wrong else "inconclusive"
        cause = f"{len(wrong or unclear)} of {len(checks)} checks {word}: {first.table} {first.check}: {first.detail}"
    else:
        ok = sum(check.ok is True for check in checks)
        accepted = f", {len(checks) - ok} accepted" if ok < len(checks) else ""
        passed = f"{ok} of {len(checks)} checks passed{accepted}" if checks else "no check has run"
        cause = f"at its gate · {passed}" + (f" · {waits.name}: {waits.why}" if waits else "")
    return RegionNeed(kind=kind, region=view.region.name, cause=cause, since=status.changed)


def _after_promotion(view: RegionView) -> RegionNeed | None:
    """A check that failed after the promotion, or a person who holds the next wave."""
    status, region = view.status, view.region.name
    if (breach := after_promotion.unsettled(view)) is not None:
        cause = breach_text(breach, taken_back=status.state == "rolled-back")
        return RegionNeed(kind=NeedKind.BREACH, region=region, cause=cause, since=breach.at)
    if status.state == "live" and status.watched.held_by:
        cause = f"the next wave is held: watch paused by {status.watched.held_by}"
        return RegionNeed(kind=NeedKind.BREACH, region=region, cause=cause, since=status.changed)
    return None


def _stopped_feed(view: RegionView) -> RegionNeed:
    """A stopped feed is due when its source may delete the oldest row that it has not read."""
    status, feed = view.status, view.status.standing[0]
    more = f" (and {len(status.standing) - 1} more)" if len(status.standing) > 1 else ""
    code = f" [{feed.code}]" if feed.code else ""
    behind = f" · {status.lag_rows:,} rows behind" if status.lag_rows else ""
    oldest = view.heard - status.lag_seconds if view.heard and status.lag_seconds else 0.0
    return RegionNeed(
        kind=NeedKind.FEED_STOPPED,
        region=view.region.name,
        cause=f"feed {feed.feed} stopped{code}{more}: {feed.why}{behind}",
        since=oldest,
        due=oldest + _retention_hours(view, feed.feed) * HOUR if oldest else 0.0,
        then="its source may delete rows that it has not read",
    )


def _retention_hours(view: RegionView, feed_name: str) -> float:
    """How long the feed's source keeps its files, according to the release of the pending or the accepted plan."""
    plan = view.plan or view.accepted
    tables = plan.release.tables if plan else ()
    feeds = plan.release.feeds if plan else ()
    sources = {feed.source for feed in feeds if feed.materialization == feed_name}
    settings: Iterable[tuple[str, str]] = next(
        (table.version.settings for table in tables if table.table.name in sources), ()
    )
    return kept_hours(settings)


def _dates(view: RegionView) -> Iterator[RegionNeed]:
    """The end of the rollback window, when the previous release is no longer kept up to date, and that of each hold."""
    status, hours = view.status, view.region.policy.rollback_window_hours
    if status.state == "live" and view.previous and status.changed and hours > 0:
        yield RegionNeed(
            kind=NeedKind.CLEANUP,
            region=view.region.name,
            cause=f"the way back to {view.previous} ends",
            since=status.changed,
            due=status.changed + hours * HOUR,
            then=f"{view.previous} is no longer kept up to date",
        )
    for held in (each for each in status.on_hold if not each.restoring):
        yield RegionNeed(
            kind=NeedKind.ON_HOLD,
            region=view.region.name,
            cause=f"{held.release} is on hold",
            since=held.at,
            due=held.due,
            then="its agent drops it",
        )
