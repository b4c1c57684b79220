"""Which commits of a source flow next, and the rows they appended (docs/design.md, rules 3, 4).

Ranges are read by file, from the log's add actions, on every source alike: a change feed clamps a range past the
end, breaks at schema changes and costs more the more commits it unites (docs/decisions/0001).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.agent.rows import appended, nanoseconds
from console.agent.store import log
from console.agent.store.shape import shape_of
from console.errors import FeedStopped
from console.model.schema import OnRewrite

MAX_COMMITS = 2000


@dataclass(frozen=True, slots=True)
class Range:
    """Commits first…last of one source, all of which may flow. files may be empty: nothing but quiet commits."""

    first: int
    last: int
    files: tuple[log.AddedFile, ...] = ()
    rows: int = 0
    skipped: tuple[int, ...] = field(default=())  # rewriting commits that the source's policy passes over


def next_range(
    source: str, position: int, end: int, rows_limit: int, *, policy: OnRewrite = "stop", bytes_limit: int = 1 << 40
) -> Range | None:
    """The next run of commits after `position`, up to `end` (a version taken as a snapshot before).

    rows_limit, bytes_limit  a run stops before it would exceed them; a single larger commit goes alone
    returns  None where position is already the end
    raises   FeedStopped E_REWRITE in front of a commit that removed or changed rows;
             FeedStopped E_BEHIND if the source is shorter than the position: it was replaced
    """
    if end < position:
        raise FeedStopped(
            f"{source} ends at version {end}, before position {position}: it was replaced or restored",
            hint="compare it with its copies, then rebuild what hangs below it",
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
            if _stops(commit, policy):
                if last > position:
                    break
                raise _rewrite(source, commit)
            skipped.append(commit.version)
            flows = policy == "take_inserts" and not commit.expires
        if flows:
            more_rows, more_bytes = sum(max(f.rows, 0) for f in commit.added), sum(f.bytes for f in commit.added)
            if files and (rows + more_rows > rows_limit or size + more_bytes > bytes_limit):
                break
            files += commit.added
            rows, size = rows + more_rows, size + more_bytes
        last = commit.version
    return Range(position + 1, last, tuple(files), rows, tuple(skipped))


def pending(source: str, position: int, end: int) -> tuple[int, int, float]:
    """How far a feed is behind: commits with rows, rows, and the age (s) of the oldest of them measured from the newest."""
    found = [c for c in log.commits(source, position + 1, end) if c.added]
    if not found:
        return 0, 0, 0.0
    rows = sum(max(f.rows, 0) for c in found for f in c.added)
    return len(found), rows, max(0.0, (found[-1].at_ms - found[0].at_ms) / 1000)


def read(session: Any, source: str, part: Range, scratch: Path, foreign: Sequence[str] = ()) -> Any:
    """The rows that a range appended, in the source's schema as of its end; exactly the files its commits added.

    scratch  a folder that has to stay until they were read; see `excerpt.place`
    foreign  columns that others write
    raises   FeedStopped E_NANOSECONDS where a time in one of these would be cut
    """
    shape = shape_of(source, part.last)
    nanoseconds.refuse(source, (file.path for file in part.files), nanoseconds.timed(shape.schema, foreign))
    return appended.rows(session, source, shape, part.files, scratch)


def _stops(commit: log.Commit, policy: OnRewrite) -> bool:
    """Whether a rewriting commit is for a person to decide.

    What RESTORE or REPLACE adds may have flowed before, and where files were removed as well, those that were added hold
    the rows that stayed: nobody can take either for inserts.
    """
    if commit.expires or policy == "ignore":
        return False
    return policy != "take_inserts" or commit.replaces or (commit.removed > 0 and len(commit.added) > 0)


def _rewrite(source: str, commit: log.Commit) -> FeedStopped:
    return FeedStopped(
        f"{source}: version {commit.version} ({commit.operation}) removed {commit.removed} files and added {len(commit.added)}:"
        " only appends flow",
        hint="if its rows need not flow, set `on_rewrite: ignore` for the table; else rebuild what hangs below it",
        code="E_REWRITE",
    )
