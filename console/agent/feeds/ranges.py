"""The next range of a source's commits to copy, and the rows they appended (docs/design.md, rules 3, 4).

Ranges are read by file, from the log's add actions, on every source alike: Delta's change feed clamps a range past the
end, breaks at schema changes, and costs more the more commits it spans (docs/decisions/0001).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.agent.rows import appended, nanoseconds
from console.agent.store import log
from console.agent.store.shape import layout_of
from console.errors import FeedStopped
from console.model.schema import OnRewrite

MAX_COMMITS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Commits first…last of one source, all of which may flow.

    files    added files; none if all commits are quiet
    rows     counted by the files' statistics
    skipped  rewriting commits ignored by the source's policy
    """

    first: int
    last: int
    files: tuple[log.AddedFile, ...] = ()
    rows: int = 0
    skipped: tuple[int, ...] = field(default=())


def next_range(
    source: str, position: int, end: int, rows_limit: int, *, policy: OnRewrite = "stop", bytes_limit: int = 1 << 40
) -> Range | None:
    """The next range of commits after `position`, up to `end` (a version taken as a snapshot before).

    rows_limit, bytes_limit  limits of a range; a single larger commit makes a range of its own
    returns  None if `position` is already the end
    raises   FeedStopped E_REWRITE before a commit that removed or changed rows;
             FeedStopped E_BEHIND if the source ends before the position: it was replaced
    """
    if end < position:
        raise FeedStopped(
            f"{source} ends at version {end}, before position {position}: it was replaced or restored",
            hint="compare it with its copies, then rebuild the tables downstream of it",
            code="E_BEHIND",
        )
    if position == end:
        return None
    files: list[log.AddedFile] = []
    rows = size = 0
    skipped: list[int] = []
    last = position
    for commit in log.commits(source, position + 1, min(end, position + MAX_COMMITS)):
        if commit.metadata and files:
            break  # a range never crosses a schema change
        flows = commit.kind == "append"
        if commit.kind == "rewrite":
            if _needs_decision(commit, policy):
                if last > position:
                    break
                raise _rewrite_error(source, commit)
            skipped.append(commit.version)
            flows = policy == "take_inserts" and not commit.is_retention
        if flows:
            more_rows, more_bytes = sum(max(f.rows, 0) for f in commit.added), sum(f.bytes for f in commit.added)
            if files and (rows + more_rows > rows_limit or size + more_bytes > bytes_limit):
                break
            files += commit.added
            rows, size = rows + more_rows, size + more_bytes
        last = commit.version
    return Range(first=position + 1, last=last, files=tuple(files), rows=rows, skipped=tuple(skipped))


def pending(source: str, position: int, end: int) -> tuple[int, int, float]:
    """Backlog of a feed: commits with rows, their rows, and the seconds from the oldest to the newest of them."""
    commits = [c for c in log.commits(source, position + 1, end) if c.added]
    if not commits:
        return 0, 0, 0.0
    rows = sum(max(f.rows, 0) for c in commits for f in c.added)
    return len(commits), rows, max(0.0, (commits[-1].at_ms - commits[0].at_ms) / 1000)


def read(
    session: Any,
    source: str,
    commits: Range,
    scratch: Path,
    *,
    foreign: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> Any:
    """The rows appended by a range, in the source's schema as of its end; reads exactly the files that its commits added.

    scratch  folder that must exist until the rows are read; see `log_excerpt.place`
    foreign  columns written by other programs
    columns  as of `appended.rows`
    raises   FeedStopped E_NANOSECONDS if a time in one of these would be truncated
    """
    layout = layout_of(source, commits.last)
    nanoseconds.refuse(source, (file.path for file in commits.files), nanoseconds.time_columns(layout.schema, foreign))
    return appended.rows(session, source, layout, commits.files, scratch, columns)


def _needs_decision(commit: log.Commit, policy: OnRewrite) -> bool:
    """Whether a rewriting commit needs a decision by a person.

    Rows added by RESTORE or REPLACE may have flowed before. If files were removed as well, the added ones contain
    surviving rows. Neither can be treated as inserts.
    """
    if commit.is_retention or policy == "ignore":
        return False
    return policy != "take_inserts" or commit.replaces or (commit.removed > 0 and len(commit.added) > 0)


def _rewrite_error(source: str, commit: log.Commit) -> FeedStopped:
    return FeedStopped(
        f"{source}: version {commit.version} ({commit.operation}) removed {commit.removed} files and added {len(commit.added)}:"
        " only appends flow",
        hint="if its rows need not flow, set `on_rewrite: ignore` for the table; else rebuild the tables downstream of it",
        code="E_REWRITE",
    )
