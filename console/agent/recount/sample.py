"""The live commits of a feed, as its target's log tells them, and which of them are computed again."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from console.agent.store import log
from console.errors import RegionError

COMMITS = 4  # a sample
ROWS = 50_000  # of the source, in a sample of several commits
LOOKED_AT = 5000  # commits of the target's log


@dataclass(frozen=True, slots=True)
class Moved:
    """One live commit: version of the target, the source's commits whose rows it holds, and how many these were.

    joins   table → the version that it was read at; None where an older console did not note it
    passed  commits of the source that it passed over
    """

    version: int
    first: int
    last: int
    rows: int
    joins: dict[str, int] | None = None
    at_ms: int = 0
    passed: tuple[int, ...] = ()

    def runs(self) -> tuple[tuple[int, int], ...]:
        """The source's commits that it holds, as runs between those that it passed over."""
        ends = [self.first - 1, *sorted(self.passed), self.last + 1]
        return tuple((before + 1, after - 1) for before, after in pairwise(ends) if after - before > 1)


def moved(target: str, app_id: str) -> tuple[Moved, ...]:
    """Every commit with rows that a feed made live, oldest first, as far back as the log goes."""
    found = []
    for commit in _backwards(target):
        note = commit.note
        if app_id not in commit.txn or note.get("kind") != "live" or "rows_in" not in note:
            continue
        joins = note.get("joins")
        held = {str(table): int(version) for table, version in joins.items()} if isinstance(joins, dict) else None
        first, last, rows = (int(note[name]) for name in ("from", "to", "rows_in"))
        rows = rows or sum(max(file.rows, 0) for file in commit.added)  # where the source's writer counted none
        if rows:
            passed = tuple(note.get("passed_over", ()))
            found.append(Moved(commit.version, first, last, rows, held, commit.at_ms, passed))
    return tuple(reversed(found))


def told_whole(target: str) -> bool:
    """Whether all commits that a table ever had are looked at: none was cleaned up, and they are not too many."""
    if log.latest_version(target) >= LOOKED_AT:
        return False
    try:
        log.commit(target, 0)
    except RegionError as error:
        if error.code != "E_LOG_GONE":
            raise
        return False
    return True


def twice(commits: Sequence[Moved]) -> str:
    """Which source commit two live commits hold; "" where each holds others."""
    for before, after in pairwise(commits):
        if after.first <= before.last:
            return f"versions {before.version} and {after.version} both hold commit {after.first} of the source"
    return ""


def strays(target: str) -> str:
    """Rows that no feed and no backfill put there; "" where there are none."""
    for commit in _backwards(target):
        if commit.kind == "append" and not commit.txn:
            return f"version {commit.version} ({commit.operation}) added rows under no feed"
    return ""


def sample(commits: Sequence[Moved], seed: str) -> tuple[Moved, ...]:
    """A few of them by seed, small ones first: at least one, and no more rows than `ROWS` where there are several."""
    whole = sorted(commits, key=lambda commit: (commit.rows, commit.version))
    drawn = whole[: max(COMMITS, len(whole) // 2)]
    random.Random(seed).shuffle(drawn)
    chosen: list[Moved] = []
    for commit in drawn:
        if len(chosen) < COMMITS and (sum(each.rows for each in chosen) + commit.rows <= ROWS):
            chosen.append(commit)
    return tuple(sorted(chosen or whole[:1], key=lambda commit: commit.version))


def _backwards(target: str) -> Iterator[log.Commit]:
    latest = log.latest_version(target)
    for version in range(latest, max(-1, latest - LOOKED_AT), -1):
        try:
            yield log.commit(target, version)
        except RegionError as error:
            if error.code == "E_LOG_GONE":
                return
            raise
