"""The live commits of a feed, from its target's log, and those of them to recompute."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from console.agent.errors import CommitGone
from console.agent.store import log

COMMITS = 4  # in a sample
ROWS = 50_000  # source rows in a sample of several commits
NEWEST_ROWS = 200_000  # source rows of the newest commits that are computed together
MAX_COMMITS = 5000  # commits of the target's log


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCommit:
    """One live commit.

    version      of the target
    first, last  source commits whose rows it contains
    rows         rows of the source
    joins        joined table → Delta version; None if an older console did not record it
    joined       joined table → path of its version at that time, as releases name it; None likewise
    passed       source commits that were skipped
    parts        live commits that are taken together, of consecutive versions up to `version`
    """

    version: int
    first: int
    last: int
    rows: int
    joins: dict[str, int] | None = None
    at_ms: int = 0
    passed: tuple[int, ...] = ()
    joined: dict[str, str] | None = None
    parts: int = 1

    @property
    def since(self) -> int:
        """The first version of the target that holds its rows."""
        return self.version - self.parts + 1

    def runs(self) -> tuple[tuple[int, int], ...]:
        """The source commits contained in it, as (first, last) between the skipped ones."""
        ends = [self.first - 1, *sorted(self.passed), self.last + 1]
        return tuple((before + 1, after - 1) for before, after in pairwise(ends) if after - before > 1)


def live_commits(target: str, app_id: str, after: int = -1) -> tuple[LiveCommit, ...]:
    """All live commits of a feed with rows, oldest first, as far back as the log reaches. after: a version of the target"""
    commits = []
    for commit in _backwards(target, after):
        note = commit.note
        if app_id not in commit.txn or note.get("kind") != "live" or "rows_in" not in note:
            continue
        joins = note.get("joins")
        join_pins = {str(table): int(version) for table, version in joins.items()} if isinstance(joins, dict) else None
        paths = note.get("joined")
        joined = {str(table): str(path) for table, path in paths.items()} if isinstance(paths, dict) else None
        first, last, rows = (int(note[name]) for name in ("from", "to", "rows_in"))
        rows = rows or sum(max(file.rows, 0) for file in commit.added)  # the source's writer may not have counted them
        if rows:
            passed = tuple(note.get("passed_over", ()))
            commits.append(
                LiveCommit(
                    version=commit.version,
                    first=first,
                    last=last,
                    rows=rows,
                    joins=join_pins,
                    at_ms=commit.at_ms,
                    passed=passed,
                    joined=joined,
                )
            )
    return tuple(reversed(commits))


def log_is_complete(target: str) -> bool:
    """Whether all commits of a table are examined: none was cleaned up, and there are not too many."""
    if log.latest_version(target) >= MAX_COMMITS:
        return False
    try:
        log.commit(target, 0)
    except CommitGone:
        return False
    return True


def overlap(commits: Sequence[LiveCommit]) -> str:
    """The source commit contained in two live commits, as one line; "" where there is none."""
    for before, after in pairwise(commits):
        if after.first <= before.last:
            return f"versions {before.version} and {after.version} both hold commit {after.first} of the source"
    return ""


def unpositioned_rows(target: str, after: int = -1) -> str:
    """The commit that added rows under no feed and no backfill, as one line; "" where there is none. after: a version"""
    for commit in _backwards(target, after):
        if commit.kind == "append" and not commit.txn:
            return f"version {commit.version} ({commit.operation}) added rows under no feed"
    return ""


def rewritten_rows(target: str, after: int = -1) -> str:
    """The commit that removed or changed rows and is neither our retention's nor accepted, as one line; "" where there is none.

    after  a version
    """
    for commit in _backwards(target, after):
        if commit.note.get("kind") == log.ACCEPTED:
            return ""
        if commit.kind == "rewrite" and not commit.is_retention:
            return f"version {commit.version} ({commit.operation}) removed or changed rows, under no feed"
    return ""


def newest(commits: Sequence[LiveCommit], most: int) -> tuple[LiveCommit, ...]:
    """The newest of them, so many at most, of `NEWEST_ROWS` rows at most unless it is a single one. Oldest first"""
    chosen: list[LiveCommit] = []
    rows = 0
    for commit in reversed(commits):
        rows += commit.rows
        if chosen and (rows > NEWEST_ROWS or len(chosen) == most):
            break
        chosen.append(commit)
    return tuple(reversed(chosen))


def together(commits: Sequence[LiveCommit]) -> tuple[LiveCommit, ...]:
    """Runs of commits that follow each other in source and target, each as one; for feeds that join nothing, whose rows do not
    depend on where a range ends.
    """
    runs: list[LiveCommit] = []
    for commit in commits:
        if runs and (runs[-1].version, runs[-1].last) == (commit.version - 1, commit.first - 1):
            before = runs[-1]
            runs[-1] = replace(
                commit,
                first=before.first,
                rows=before.rows + commit.rows,
                passed=(*before.passed, *commit.passed),
                parts=before.parts + commit.parts,
            )
        else:
            runs.append(commit)
    return tuple(runs)


def sample(commits: Sequence[LiveCommit], seed: str) -> tuple[LiveCommit, ...]:
    """Up to `COMMITS` of them, drawn by seed from the smaller half; at most `ROWS` rows unless it is a single commit."""
    by_size = sorted(commits, key=lambda commit: (commit.rows, commit.version))
    candidates = by_size[: max(COMMITS, len(by_size) // 2)]
    random.Random(seed).shuffle(candidates)
    chosen: list[LiveCommit] = []
    for commit in candidates:
        if len(chosen) < COMMITS and (sum(each.rows for each in chosen) + commit.rows <= ROWS):
            chosen.append(commit)
    return tuple(sorted(chosen or by_size[:1], key=lambda commit: commit.version))


def _backwards(target: str, after: int = -1) -> Iterator[log.Commit]:
    latest = log.latest_version(target)
    for version in range(latest, max(after, latest - MAX_COMMITS, -1), -1):
        try:
            yield log.commit(target, version)
        except CommitGone:
            return
