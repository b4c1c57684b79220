"""Checks that continue after a promotion: their progress, the failures and their consequences, and decisions. Pure.

A breach is a check that failed, never an inconclusive one. Breaches and decisions are stored as incidents of the
rollout; progress is not.
"""

from dataclasses import replace
from typing import Literal, assert_never

from console.model.way_back import age_text
from console.record import dataclass

OnBreach = Literal["pause", "tell", "rollback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchProgress:
    """The progress of the checks of a promoted release, as its agent reports it each second.

    left    seconds until the watch may end; 0 while its last round is under way
    at      when the last completed round ended, seconds since 1970, UTC; 0 before the first one
    rounds  completed by this agent
    clean   of these the last ones in a row in which no check failed and none was inconclusive
    unable  why the last round could not be completed, "" if it was
    """

    left: float = 0.0
    at: float = 0.0
    rounds: int = 0
    clean: int = 0
    unable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breached:
    """A check failed after the promotion. action: the consequence, by the accepted plan"""

    table: str
    check: str
    detail: str
    action: OnBreach


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSteered:
    """A person takes the decision about a watched release over (`pause`), or lets the next wave begin (`resume`)."""

    by: str
    verb: Literal["pause", "resume"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEnded:
    """The time of the watch is over, and a round has ended since. unclear: names of checks that were inconclusive then"""

    rounds: int
    unclear: tuple[str, ...] = ()


WatchNews = Breached | WatchSteered | WatchEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A breach of a status. at: seconds since 1970, UTC; answered: who let the next wave begin nevertheless, "" for nobody"""

    at: float
    table: str
    check: str
    detail: str
    action: OnBreach
    answered: str = ""

    @property
    def name(self) -> str:
        """`requests: rows per day, by the logs`"""
        return f"{self.table}: {self.check}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The stored state of the watch of one rollout.

    breaches   one of each check, oldest first
    held_by    the person who took the decision over; "" for nobody
    ended      when the watch ended, seconds since 1970, UTC; 0 before
    unclear    checks that were inconclusive then
    """

    breaches: tuple[Breach, ...] = ()
    held_by: str = ""
    ended: float = 0.0
    unclear: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[Breach, ...]:
        """Breaches that hold the next wave."""
        return tuple(breach for breach in self.breaches if breach.action != "tell" and not breach.answered)

    @property
    def holds(self) -> str:
        """Why the next wave may not begin, according to the stored state; "" if it may."""
        if self.held_by:
            return f"paused by {self.held_by}"
        return f"{self.open[0].name}: {self.open[0].detail}" if self.open else ""

    def knows(self, table: str, check: str) -> bool:
        """Whether a failure of this check has been acted on."""
        return any((breach.table, breach.check) == (table, check) for breach in self.breaches)

    def after(self, news: WatchNews, at: float) -> "Watched":
        """With one more incident. at: seconds since 1970, UTC"""
        match news:
            case Breached(table=table, check=check, detail=detail, action=action):
                if self.knows(table, check):
                    return self
                breach = Breach(at=at, table=table, check=check, detail=detail, action=action)
                return replace(self, breaches=(*self.breaches, breach))
            case WatchSteered(by=by, verb="pause"):
                return replace(self, held_by=by)
            case WatchSteered(by=by):
                answered = tuple(each if each.answered else replace(each, answered=by) for each in self.breaches)
                return replace(self, held_by="", breaches=answered)
            case WatchEnded(unclear=unclear):
                return replace(self, ended=at, unclear=unclear)
            case _:
                assert_never(news)


NOT_WATCHED = Watched()


def watch_text(watch: WatchProgress, now: float) -> str:
    """`watched for another 12 min: 80 rounds, the last one 9 s ago`. now: seconds since 1970, UTC"""
    left = f"watched for another {age_text(watch.left)}" if watch.left else "watched until its last round has ended"
    if watch.unable:
        return f"{left}; the last round was not completed: {watch.unable}"
    if not watch.rounds:
        return f"{left}: no round has ended yet"
    rounds = "1 round" if watch.rounds == 1 else f"{watch.rounds:,} rounds"
    return f"{left}: {rounds}, the last one {age_text(now - watch.at)} ago"


def breach_text(breach: Breach, *, taken_back: bool) -> str:
    """`after the promotion requests: rows per day failed (…): the next wave is held`.

    taken_back  whether the previous release is live again
    """
    failed = f"after the promotion {breach.name} failed ({breach.detail})"
    if breach.answered:
        return f"{failed}; the next wave may begin, says {breach.answered}"
    match breach.action:
        case "tell":
            return failed
        case "pause":
            return f"{failed}: the next wave is held"
        case "rollback":
            return (
                f"{failed}: {'rolled back by its agent' if taken_back else 'to be rolled back; the next wave is held'}"
            )
        case _:
            assert_never(breach.action)


def news_text(news: WatchNews) -> str:
    """The log line of an incident, which older versions read."""
    match news:
        case Breached(table=table, check=check, detail=detail, action=action):
            follows = {"tell": "nothing follows", "pause": "the next wave is held", "rollback": "it is rolled back"}
            return f"after the promotion {table}: {check} failed: {detail}; {follows[action]}, as the policy says"
        case WatchSteered(by=by, verb="pause"):
            return f"watch paused by {by}: no automatic rollback, and the next wave is held"
        case WatchSteered(by=by):
            return f"watch resumed by {by}: the next wave may begin"
        case WatchEnded(rounds=rounds, unclear=unclear):
            some = f"; inconclusive: {', '.join(unclear)}" if unclear else ""
            return f"the watch after the promotion has ended, {rounds:,} rounds{some}"
        case _:
            assert_never(news)
