"""Foreign commits to a managed target, detected from its log (docs/design.md, rules 1, 5).

A RESTORE, REPLACE or overwrite removes rows and leaves the feed's position unchanged, so continuing would hide the loss
for ever. The feed stops before such a commit, and every later process detects it again, since nothing is committed
after it.
"""

from console.agent.errors import CommitGone, PositionsExpire
from console.agent.store import log, open_tables
from console.errors import FeedStopped


def last_own(target: str, app_id: str, latest: int) -> log.Commit | None:
    """The last commit of a feed up to version `latest`; None if the log has none.

    raises  FeedStopped E_FOREIGN if a foreign commit after it removed rows
    """
    accepted = False
    for version in range(latest, -1, -1):
        try:
            commit = log.commit(target, version)
        except CommitGone:
            return None
        if app_id in commit.txn:
            return commit
        accepted |= commit.note.get("kind") == log.ACCEPTED
        if not accepted:
            _refuse(target, commit)
    return None


def check(target: str, first: int, last: int) -> None:
    """Check commits first…last. raises FeedStopped E_FOREIGN if one of them removed rows and is not ours"""
    for commit in log.commits(target, first, last):
        _refuse(target, commit)


def check_unclaimed(target: str, app_id: str) -> None:
    """Check that a feed may begin: the target must not contain any of its rows. A missing position is never taken as 0.

    raises  FeedStopped E_NO_POSITION if the target holds rows without a position, or the feed's own by a lost position or
            another fence
    """
    prefix, at_fence, _ = app_id.rpartition("@")
    for commit in log.commits(target, 0, log.latest_version(target)):
        if commit.kind != "append":
            continue
        own = [other for other in commit.txn if other == app_id or (at_fence and other.startswith(f"{prefix}@"))]
        if own or not commit.txn:
            whose = f"of {', '.join(own)}" if own else "without a position"
            raise FeedStopped(
                f"{target}: version {commit.version} holds rows {whose}, so {app_id} cannot begin there",
                hint="console discard, then plan again: the table is rebuilt",
                code="E_NO_POSITION",
            )


def check_retains_positions(target: str) -> None:
    """Check that positions do not expire. raises FeedStopped E_TXN_RETENTION if Delta would forget them"""
    setting = "delta.setTransactionRetentionDuration"
    with open_tables.opened(target) as opened:
        expire = setting in opened.metadata().configuration
    if expire:
        raise PositionsExpire(
            f"{target} has {setting}: positions of its feeds would be forgotten",
            hint=f"ALTER TABLE … UNSET TBLPROPERTIES ('{setting}'), then console retry",
        )


def _refuse(target: str, commit: log.Commit) -> None:
    if commit.kind == "rewrite" and not commit.is_retention:
        raise FeedStopped(
            f"{target}: version {commit.version} ({commit.operation}) is not ours and removed {commit.removed} files:"
            " rows are gone, but the feed's position is unchanged",
            hint="RESTORE the missing rows and `console maintain --accept`, or rebuild the table: `console plan`",
            code="E_FOREIGN",
        )
