"""Recovery of a promotion or rollback that was committed and not recorded: the release table has its outcome."""

from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.model.event import ENDED, Entered, Promoted, RolledBack


def record_missing_decision(recorder: Recorder, releases: Releases, rollouts: Rollouts) -> bool:
    """Record a decision that the last agent committed but could not record, because it died or its disk was full.

    The event goes to the newest rollout, as it would have at the time; a rollback returns from whichever release was
    promoted last.

    returns  whether the live release differs from the one in the events
    """
    status, live = recorder.status, releases.in_state("live")
    if status.state == "promoting":
        if live is None or live.row.id != status.release:
            recorder.store(Entered("awaiting-confirmation"))
            return False
        recorder.store(
            Promoted(
                release=status.release, was=status.was, by=live.row.by, host=live.row.host, version=releases.version()
            )
        )
        return True
    if status.state not in ENDED or live is None:
        return False
    own = rollouts.decision()
    if own is None and live.row.id == status.release:  # cancelled before its promotion was noticed
        recorder.store(
            Promoted(
                release=status.release, was=status.was, by=live.row.by, host=live.row.host, version=releases.version()
            )
        )
        return True
    decided = own or _last_decision(rollouts)
    if decided is None or live.row.id == decided.release:
        return False
    recorder.store(
        RolledBack(
            release=live.row.id, was=decided.release, by=live.row.by, host=live.row.host, version=releases.version()
        )
    )
    return True


def _last_decision(rollouts: Rollouts) -> Promoted | RolledBack | None:
    """The last decision of all rollouts. Only those since it are read: a region keeps the events of years."""
    for name in rollouts.names():
        decisions = [r.event for r in rollouts.events(name) if isinstance(r.event, Promoted | RolledBack)]
        if decisions:
            return decisions[-1]
    return None
