"""A promotion or a way back whose record is missing: the release table knows what became of it."""

from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.model.event import ENDED, Entered, Promoted, RolledBack


def settle(recorder: Recorder, releases: Releases, rollouts: Rollouts) -> bool:
    """Record what the agent did and could not record, since it died in between or its disk was full.

    The newest rollout gets the record, as it would have at the time: a way back is taken from whatever ended last.

    returns  whether another release is live than the record had it
    """
    status, live = recorder.status, releases.in_state("live")
    if status.state == "promoting":
        if live is None or live.row.id != status.release:
            recorder.store(Entered("awaiting-confirmation"))
            return False
        recorder.store(Promoted(status.release, status.was, live.row.by, live.row.host, releases.version()))
        return True
    if status.state not in ENDED or live is None:
        return False
    own = rollouts.decision()
    if own is None and live.row.id == status.release:  # it was cancelled before anybody saw that it had been promoted
        recorder.store(Promoted(status.release, status.was, live.row.by, live.row.host, releases.version()))
        return True
    decided = own or _last(rollouts)
    if decided is None or live.row.id == decided.release:
        return False
    recorder.store(RolledBack(live.row.id, decided.release, live.row.by, live.row.host, releases.version()))
    return True


def _last(rollouts: Rollouts) -> Promoted | RolledBack | None:
    """The last decision of all rollouts; each rollout numbers its events anew."""
    found = [
        (int(recorded.rollout.rpartition("-")[2]), recorded.seq, recorded.event)
        for recorded in rollouts.all_events()
        if isinstance(recorded.event, Promoted | RolledBack)
    ]
    return max(found, key=lambda entry: entry[:2])[2] if found else None
