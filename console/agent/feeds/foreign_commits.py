"""What somebody else did to a target of ours, told from its log (docs/design.md, rules 1, 5).

A RESTORE, REPLACE or overwrite takes rows away and leaves the feed's position where it was: going on would hide the
loss for ever. So the feed stops in front of it, and it is found again by every later process, since none of them
commits anything behind it.
"""

from deltalake import DeltaTable

from console.agent.store import log
from console.errors import FeedStopped, RegionError

ACCEPTED = "accepted"  # the note by which a person lets the feeds go on over a foreign commit


def last_own(target: str, app_id: str, latest: int) -> log.Commit | None:
    """The last commit of a feed up to version `latest`; None where the log tells of none.

    raises  FeedStopped E_FOREIGN if somebody else took rows away after it
    """
    accepted = False
    for version in range(latest, -1, -1):
        try:
            commit = log.commit(target, version)
        except RegionError as error:
            if error.code == "E_LOG_GONE":
                return None
            raise
        if app_id in commit.txn:
            return commit
        accepted |= commit.note.get("kind") == ACCEPTED
        if not accepted:
            _refuse(target, commit)
    return None


def check(target: str, first: int, last: int) -> None:
    """raises FeedStopped E_FOREIGN if one of the commits first…last took rows away and is not ours"""
    for commit in log.commits(target, first, last):
        _refuse(target, commit)


def unclaimed(target: str, app_id: str) -> None:
    """A feed may begin only where no row can be its own already: a missing position is never taken for 0.

    raises  FeedStopped E_NO_POSITION if the target holds rows without a position, or its own, forgotten, or by another fence
    """
    same, mark, _ = app_id.rpartition("@")
    for commit in log.commits(target, 0, log.latest_version(target)):
        if commit.kind != "append":
            continue
        again = [other for other in commit.txn if other == app_id or (mark and other.startswith(f"{same}@"))]
        if again or not commit.txn:
            whose = f"of {', '.join(again)}" if again else "without a position"
            raise FeedStopped(
                f"{target}: version {commit.version} holds rows {whose}, so {app_id} cannot begin there",
                hint="console discard, then plan again: the table is built anew",
                code="E_NO_POSITION",
            )


def keeps_positions(target: str) -> None:
    """raises FeedStopped E_TXN_RETENTION if the table lets positions expire: Delta would forget what has been carried"""
    forgets = "delta.setTransactionRetentionDuration"
    if forgets in DeltaTable(target).metadata().configuration:
        raise FeedStopped(
            f"{target} has {forgets}: positions of its feeds would be forgotten",
            hint=f"ALTER TABLE … UNSET TBLPROPERTIES ('{forgets}'), then console retry",
            code="E_TXN_RETENTION",
        )


def _refuse(target: str, commit: log.Commit) -> None:
    if commit.kind == "rewrite" and not commit.expires:
        raise FeedStopped(
            f"{target}: version {commit.version} ({commit.operation}) is not ours and took {commit.removed} files away:"
            " rows are gone and the feed's position is not",
            hint="RESTORE what is missing and `console maintain --accept`, or `console plan` and rebuild it",
            code="E_FOREIGN",
        )
