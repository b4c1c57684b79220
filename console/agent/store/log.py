"""A Delta log read as JSON: files added by each commit, whether the commit may flow, positions and notes in it.

No data is read and no JVM is started: a thousand commits take about 10 ms. A table is given by its path or URI.
source  the Delta transaction log protocol
"""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from console.agent.errors import CommitEmpty, CommitGone, LogDamaged
from console.agent.object_store.object_path import in_bucket, place
from console.agent.store.log_files import Stamp, commit_file, listed_from, names, newest_names, root_of, sizes, stamp
from console.errors import Unreachable

Kind = Literal["append", "quiet", "rewrite"]
# A RESTORE after a DELETE only adds files, but none of their rows is new; a REPLACE of an emptied table looks like a write.
REPLACING = ("RESTORE", "REPLACE", "CREATE OR REPLACE", "CLONE")
RETENTION = "retention"  # kind of the note on deletes by our own retention
MERGE = "merge"  # kind of the note on commits that unite the partial states of a key
ACCEPTED = "accepted"  # kind of the note by which a person accepts the foreign commits before it
LATE_HINT = "log retention was shorter than the feed's delay; rebuild the table (`console discard`, then plan again)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A data file added by a commit.

    path    absolute
    rows    without those deleted by its deletion vector; -1 without statistics of the writer
    values  partition values from the log, by physical column name; never taken from folder names
    vector  deletion vector as the log's JSON, "" if there is none
    """

    path: str
    rows: int
    bytes: int
    values: tuple[tuple[str, str | None], ...] = ()
    vector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version of a table.

    kind      append: data files added, none removed · quiet: no row changed (OPTIMIZE, metadata, an empty commit) ·
              rewrite: rows removed or changed (DELETE, MERGE, overwrite), or restored (RESTORE, REPLACE)
    removed   data files removed
    metadata  whether it changed the table's metadata
    txn       app id → number
    note      our userMetadata, or {}
    at_ms     milliseconds since 1970, UTC
    """

    version: int
    kind: Kind
    operation: str
    added: tuple[AddedFile, ...] = ()
    removed: int = 0
    metadata: bool = False
    txn: dict[str, int] = field(default_factory=dict)
    note: dict[str, Any] = field(default_factory=dict)
    at_ms: int = 0

    @property
    def replaces(self) -> bool:
        """Whether it replaced the table's content as a whole: added rows may have flowed before."""
        return self.version > 0 and self.operation.upper().startswith(REPLACING)

    @property
    def is_retention(self) -> bool:
        """Whether it is a delete by our own retention: downstream tables keep their rows."""
        return self.note.get("kind") == RETENTION


def exists(table: str) -> bool:
    return latest_version(table, missing_ok=True) >= 0


def latest_version(table: str, *, missing_ok: bool = False) -> int:
    """The newest version in the log; -1 for no table if `missing_ok`.

    raises  Unreachable if there is no table
    """
    if not in_bucket(table) and (known := _newest_known(table)) >= 0:
        return known
    newest = -1
    with suppress(FileNotFoundError):
        for name in newest_names(table):
            stem, _, suffix = name.partition(".")
            if len(stem) == 20 and (suffix == "json" or suffix.startswith("checkpoint")) and stem.isdigit():
                newest = max(newest, int(stem))
    if newest < 0 and not missing_ok:
        raise Unreachable(
            f"{table} is not a Delta table", hint="was it moved or dropped? `console doctor` lists the tables"
        )
    if not in_bucket(table):
        _note_newest(table, newest)
    return newest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Newest:
    """The newest commit of a log on a disk, recognised by its file. listed: monotonic, when the whole log was last listed"""

    version: int
    stamp: Stamp
    listed: float


_NEWEST: dict[str, _Newest] = {}
# A log of weeks has hundreds of thousands of commits, and each tick asks several times for its end: those since the last time are
# looked for one by one. The whole is listed once a minute, by which a longer gap in it shows.
LISTED_SECONDS = 60.0
_MOST_NEWEST = 4096


def _newest_known(table: str) -> int:
    """The newest version, from the one known before; -1 if the log has to be listed."""
    known = _NEWEST.get(table)
    if known is None or time.monotonic() - known.listed > LISTED_SECONDS or stamp(table, known.version) != known.stamp:
        return -1
    version, newest = known.version, known.stamp
    while (found := stamp(table, version + 1)) is not None:
        version, newest = version + 1, found
    if stamp(table, version + 2) is not None:
        return -1  # a commit is missing before this one
    if version > known.version:
        _NEWEST[table] = replace(known, version=version, stamp=newest)
    return version


def _note_newest(table: str, version: int) -> None:
    if version < 0 or (found := stamp(table, version)) is None:
        return
    if len(_NEWEST) >= _MOST_NEWEST:
        _NEWEST.clear()
    _NEWEST[table] = _Newest(version=version, stamp=found, listed=time.monotonic())


def check_intact(table: str) -> None:
    """Check that no commit since the last checkpoint is an empty file, as after a power loss. deltalake reads an empty
    file as a commit without actions, so its content would be lost silently.

    raises  RegionError E_LOG_EMPTY
    """
    if not in_bucket(table) and (last := last_checkpoint(table)) is not None:
        version = last.version + 1
        while (found := stamp(table, version)) is not None:
            if not found[2]:
                raise _empty_error(table, version)
            version += 1
        return
    empty, checkpoint = [], -1
    for name, size in sizes(table):
        stem, _, suffix = name.partition(".")
        if not (len(stem) == 20 and stem.isdigit()):
            continue
        if suffix.startswith("checkpoint"):
            checkpoint = max(checkpoint, int(stem))
        elif suffix == "json" and not size:
            empty.append(int(stem))
    if lost := [version for version in sorted(empty) if version > checkpoint]:
        raise _empty_error(table, lost[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpoint:
    """The checkpoint that Delta's hint names. actions: in it, about as many as the table has files; -1 if it does not say"""

    version: int
    actions: int


def last_checkpoint(table: str) -> LastCheckpoint | None:
    """None without one, or if the hint cannot be read. It spares a look through a log of weeks."""
    try:
        hint = json.loads((root_of(table) / "_delta_log" / "_last_checkpoint").read_bytes())
        return LastCheckpoint(version=int(hint["version"]), actions=int(hint.get("size", -1)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def covers(table: str, version: int) -> bool:
    """Whether the log is complete up to a version: from a checkpoint, or the first commit, without a gap.

    deltalake does not check this: it takes the rest of a cleaned-up log for the whole if that rest begins with a commit
    that changed the table's metadata.
    """
    checkpoints, commits = {-1}, set[int]()
    with suppress(FileNotFoundError):
        for name in names(table):
            stem, _, suffix = name.partition(".")
            if not (len(stem) == 20 and stem.isdigit() and int(stem) <= version):
                continue
            if suffix.startswith("checkpoint"):
                checkpoints.add(int(stem))
            elif suffix == "json":
                commits.add(int(stem))
    return commits.issuperset(range(max(checkpoints) + 1, version + 1))


def _empty_error(table: str, version: int) -> CommitEmpty:
    return CommitEmpty(
        f"{table}: commit {version} is empty, as after a power loss",
        hint=f"restore _delta_log/{version:020}.json from a copy, or the table to version {version - 1}",
    )


def action_lines(table: str, version: int, hint: str = LATE_HINT) -> list[str]:
    """A commit's actions, one line of JSON each. Only line feeds separate them: texts may contain Unicode's line separators.

    hint    of the error
    raises  RegionError E_LOG_GONE if the commit was cleaned up
    """
    try:
        text = place(commit_file(table, version)).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _gone_error(table, version, hint) from None
    return [line for line in text.split("\n") if line.strip()]


def _gone_error(table: str, version: int, hint: str) -> CommitGone:
    return CommitGone(f"{table}: commit {version} is gone from the log", hint=hint)


def commit(table: str, version: int) -> Commit:
    """One commit, cached by its file.

    raises  RegionError E_LOG_GONE if its JSON was cleaned up; E_LOG_EMPTY, E_LOG_DAMAGED
    """
    if in_bucket(table):
        return next(commits(table, version, version))
    found = stamp(table, version)
    if found is None:
        raise _gone_error(table, version, LATE_HINT)
    return _commit(table, version, found)


@lru_cache(maxsize=4096)
def _commit(table: str, version: int, _: Stamp | str) -> Commit:
    lines = action_lines(table, version)
    if not lines:
        raise _empty_error(table, version)
    try:
        actions = [json.loads(line) for line in lines]
    except ValueError:
        raise LogDamaged(
            f"{table}: commit {version} is cut short or damaged",
            hint=f"restore _delta_log/{version:020}.json from a copy, or the table to version {version - 1}",
        ) from None
    return _parse_commit(root_of(table), version, actions)


def commits(table: str, first: int, last: int) -> Iterator[Commit]:
    """Commits first…last, both included."""
    if not in_bucket(table):
        for version in range(first, last + 1):
            yield commit(table, version)
        return
    if first > last:
        return
    listed = listed_from(table, f"{first:020}")  # with the tags that tell a file from its successor, in one request
    for version in range(first, last + 1):
        if (entry := listed.get(f"{version:020}.json")) is None:
            raise _gone_error(table, version, LATE_HINT)
        yield _commit(table, version, entry.tag)


def _parse_commit(root: Path, version: int, actions: list[dict[str, Any]]) -> Commit:
    added: list[AddedFile] = []
    removed = rewritten = 0
    metadata = False
    txn: dict[str, int] = {}
    info: dict[str, Any] = {}
    for action in actions:
        match action:
            case {"add": dict(add)}:
                if add.get("dataChange", True):
                    added.append(_added_file(root, add))
            case {"remove": dict(remove)}:
                removed += bool(remove.get("dataChange", True))
            case {"cdc": dict()}:
                rewritten += 1
            case {"metaData": dict()}:
                metadata = version > 0
            case {"txn": dict(entry)}:
                txn[str(entry["appId"])] = int(entry["version"])
            case {"commitInfo": dict(recorded)}:
                info = recorded
    operation = str(info.get("operation") or "")
    replaced = version > 0 and operation.upper().startswith(REPLACING)
    kind: Kind = "rewrite" if removed or rewritten or replaced else "append" if added else "quiet"
    return Commit(
        version=version,
        kind=kind,
        operation=operation,
        added=tuple(added),
        removed=removed,
        metadata=metadata,
        txn=txn,
        note=_parse_note(info.get("userMetadata")),
        at_ms=int(info.get("timestamp") or 0),
    )


def _added_file(root: Path, add: dict[str, Any]) -> AddedFile:
    stats = json.loads(add["stats"]) if add.get("stats") else {}
    vector = add.get("deletionVector")
    counted = stats.get("numRecords")
    rows = -1 if counted is None else int(counted)
    return AddedFile(
        path=absolute_path(root, str(add["path"])),
        rows=rows - int(vector["cardinality"]) if vector and rows >= 0 else rows,
        bytes=int(add.get("size") or 0),
        values=tuple(sorted((name, value or None) for name, value in (add.get("partitionValues") or {}).items())),
        vector=json.dumps(vector) if vector else "",
    )


def absolute_path(root: Path, path: str) -> str:
    """The absolute path of a file in a log: given relative to the table or as a URI, both percent-encoded.

    returns  an absolute path, or a URI of a bucket; any other URI unchanged
    """
    scheme, colon, rest = path.partition(":")
    if in_bucket(path):
        return str(place(unquote(path)))
    if not (colon and scheme.isalnum()):
        return str(root / unquote(path))
    return unquote("/" + rest.lstrip("/")) if scheme == "file" else path


def _parse_note(text: object) -> dict[str, Any]:
    try:
        note = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}
