"""A promotion or a way back whose record is missing: the release table knows what became of it."""

from console.agent.rollout.recorder import Recorder
from console.agent.store.ledger import Releases, Rollouts
from console.model.event import Entered, Promoted, RolledBack


def settle(recorder: Recorder, releases: Releases, rollouts: Rollouts) -> bool:
    """Record what the agent did and could not record, since it died in between or its disk was full.

    returns  whether another release is live than the record had it
    """
    status, live = recorder.status, releases.in_state("live")
    if status.state == "promoting":
        if live is None or live.row.id != status.release:
            recorder.store(Entered("awaiting-confirmation"))
            return False
        recorder.store(Promoted(status.release, status.was, live.row.by, live.row.host, releases.version()))
        return True
    decided = rollouts.decision() if status.state in ("live", "rolled-back") else None
    if decided is None or live is None or live.row.id == decided.release:
        return False
    recorder.store(RolledBack(live.row.id, decided.release, live.row.by, live.row.host, releases.version()))
    return True
