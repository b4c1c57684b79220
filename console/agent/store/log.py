"""One Delta log, read as the JSON it is: what each commit added, whether it may flow, which position it carries.

Reads no data and starts no JVM: a thousand commits cost about 10 ms. Paths are local directories.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from console.errors import RegionError, Unreachable

Kind = Literal["append", "quiet", "rewrite"]
# A RESTORE after a DELETE only adds files, and none of their rows is new; a REPLACE of an emptied table looks like a write.
REPLACING = ("RESTORE", "REPLACE", "CREATE OR REPLACE", "CLONE")
RETENTION = "retention"  # the note of our own deletes
LATE_HINT = "log retention was shorter than the feed's delay; rebuild the table (`console discard`, then plan again)"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """One data file a commit added.

    rows    those that its deletion vector leaves; -1 where the writer left no statistics
    values  partition values as the log says them, by physical column name; never told from names of folders
    vector  its deletion vector as the log's JSON, "" where it has none
    """

    path: str  # absolute
    rows: int
    bytes: int
    values: tuple[tuple[str, str | None], ...] = ()
    vector: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table.

    kind   append: data files added, nothing removed · quiet: no row changed (OPTIMIZE, metadata, an empty commit) ·
           rewrite: rows removed or changed (DELETE, MERGE, overwrite), or put back (RESTORE, REPLACE)
    txn    app id → number
    note   our userMetadata, or {}
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
        """Whether the table was set to another content as a whole: what it adds may have flowed before."""
        return self.version > 0 and self.operation.upper().startswith(REPLACING)

    @property
    def is_retention(self) -> bool:
        """Whether it only deletes what retention allows to go: readers keep what they have."""
        return self.note.get("kind") == RETENTION


def local(table: str) -> Path:
    """The directory of a table given by path or file:// URI."""
    return Path(unquote(urlparse(table).path)) if table.startswith("file:") else Path(table)


def exists(table: str) -> bool:
    return latest_version(table, missing_ok=True) >= 0


def latest_version(table: str, *, missing_ok: bool = False) -> int:
    """The newest version in the log; -1 for no table if `missing_ok`.

    raises  Unreachable if there is no table
    """
    newest = -1
    try:
        with os.scandir(local(table) / "_delta_log") as entries:
            for entry in entries:
                stem, _, suffix = entry.name.partition(".")
                if len(stem) == 20 and (suffix == "json" or suffix.startswith("checkpoint")) and stem.isdigit():
                    newest = max(newest, int(stem))
    except FileNotFoundError:
        pass
    if newest < 0 and not missing_ok:
        raise Unreachable(
            f"{table} is no Delta table", hint="was it moved or dropped? `console doctor` lists the tables"
        )
    return newest


def check_intact(table: str) -> None:
    """See that no commit since the last checkpoint is empty, as after a power loss: deltalake reads such a one as a
    commit that did nothing, and what it held would be gone without a word.

    raises  RegionError E_LOG_EMPTY
    """
    folder, empty, checkpoint = local(table) / "_delta_log", [], -1
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            stem, _, suffix = entry.name.partition(".")
            if not (len(stem) == 20 and stem.isdigit()):
                continue
            if suffix.startswith("checkpoint"):
                checkpoint = max(checkpoint, int(stem))
            elif suffix == "json" and not entry.stat().st_size:
                empty.append(int(stem))
    if lost := [version for version in sorted(empty) if version > checkpoint]:
        raise _empty(table, lost[0])


def covers(table: str, version: int) -> bool:
    """Whether the log still tells all of a version: from a checkpoint, or the first commit, up to it without a hole.

    deltalake does not ask: it takes what is left of a cleaned log for the whole, where that begins with a commit that
    changed the table's metadata.
    """
    begun, commits = {-1}, set[int]()
    with suppress(FileNotFoundError), os.scandir(local(table) / "_delta_log") as entries:
        for entry in entries:
            stem, _, suffix = entry.name.partition(".")
            if not (len(stem) == 20 and stem.isdigit() and int(stem) <= version):
                continue
            if suffix.startswith("checkpoint"):
                begun.add(int(stem))
            elif suffix == "json":
                commits.add(int(stem))
    return commits.issuperset(range(max(begun) + 1, version + 1))


def _empty(table: str, version: int) -> RegionError:
    return RegionError(
        f"{table}: commit {version} is empty, as after a power loss",
        hint=f"restore _delta_log/{version:020}.json from a copy, or the table to version {version - 1}",
        code="E_LOG_EMPTY",
    )


def action_lines(table: str, version: int, hint: str = LATE_HINT) -> list[str]:
    """A commit's actions, each as its line of JSON. Only a line feed ends one: a text within may have Unicode's other line ends.

    raises  RegionError E_LOG_GONE if the commit was cleaned up
    """
    try:
        text = Path(_json(table, version)).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _gone(table, version, hint) from None
    return [line for line in text.split("\n") if line.strip()]


def _json(table: str, version: int) -> str:
    return f"{local(table)}/_delta_log/{version:020}.json"


def _gone(table: str, version: int, hint: str) -> RegionError:
    return RegionError(f"{table}: commit {version} is gone from the log", hint=hint, code="E_LOG_GONE")


def commit(table: str, version: int) -> Commit:
    """One commit; read once, and again where the file is another: a table that was dropped is written anew in its place.

    raises  RegionError E_LOG_GONE if its JSON was cleaned up: what it added can no longer be told
    """
    try:
        found = os.stat(_json(table, version))
    except FileNotFoundError:
        raise _gone(table, version, LATE_HINT) from None
    return _commit(table, version, (found.st_ino, found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=4096)
def _commit(table: str, version: int, _: tuple[int, int, int]) -> Commit:
    lines = action_lines(table, version)
    if not lines:
        raise _empty(table, version)
    try:
        actions = [json.loads(line) for line in lines]
    except ValueError:
        raise RegionError(
            f"{table}: commit {version} is cut short or damaged",
            hint=f"restore _delta_log/{version:020}.json from a copy, or the table to version {version - 1}",
            code="E_LOG_DAMAGED",
        ) from None
    return _parse(local(table), version, actions)


def commits(table: str, first: int, last: int) -> Iterator[Commit]:
    """Commits first…last, both included."""
    for version in range(first, last + 1):
        yield commit(table, version)


def position(table: str, app_id: str, *, as_of: int | None = None) -> int | None:
    """The number last committed under an app id, or None."""
    try:
        found: int | None = DeltaTable(table, version=as_of).transaction_version(app_id)
    except TableNotFoundError:
        return None
    return found


def table_id(table: str) -> str:
    """The id Delta gave the table when it was created; a table replaced or cloned has another."""
    return str(DeltaTable(table).metadata().id)


def schema_json(table: str, version: int | None = None) -> str:
    """The schema as Delta's JSON, as of a version."""
    return str(DeltaTable(table, version=version).schema().to_json())


def _parse(root: Path, version: int, actions: list[dict[str, Any]]) -> Commit:
    added: list[AddedFile] = []
    removed = rewritten = 0
    metadata = False
    txn: dict[str, int] = {}
    info: dict[str, Any] = {}
    for action in actions:
        match action:
            case {"add": dict(add)}:
                if add.get("dataChange", True):
                    added.append(_file(root, add))
            case {"remove": dict(remove)}:
                removed += bool(remove.get("dataChange", True))
            case {"cdc": dict()}:
                rewritten += 1
            case {"metaData": dict()}:
                metadata = version > 0
            case {"txn": dict(entry)}:
                txn[str(entry["appId"])] = int(entry["version"])
            case {"commitInfo": dict(found)}:
                info = found
    operation = str(info.get("operation") or "")
    put_back = version > 0 and operation.upper().startswith(REPLACING)
    kind: Kind = "rewrite" if removed or rewritten or put_back else "append" if added else "quiet"
    return Commit(
        version,
        kind,
        operation,
        tuple(added),
        removed,
        metadata,
        txn,
        _note(info.get("userMetadata")),
        int(info.get("timestamp") or 0),
    )


def _file(root: Path, add: dict[str, Any]) -> AddedFile:
    stats = json.loads(add["stats"]) if add.get("stats") else {}
    vector = add.get("deletionVector")
    told = stats.get("numRecords")
    rows = -1 if told is None else int(told)
    return AddedFile(
        absolute_path(root, str(add["path"])),
        rows - int(vector["cardinality"]) if vector and rows >= 0 else rows,
        int(add.get("size") or 0),
        tuple(sorted((name, value or None) for name, value in (add.get("partitionValues") or {}).items())),
        json.dumps(vector) if vector else "",
    )


def absolute_path(root: Path, path: str) -> str:
    """Where a file lies that a log names: relative to its table or by a URI, either way in the escapes of URIs.

    returns  an absolute path; of another store than the local disk the URI as it stands
    """
    scheme, colon, rest = path.partition(":")
    if not (colon and scheme.isalnum()):
        return str(root / unquote(path))
    return unquote("/" + rest.lstrip("/")) if scheme == "file" else path


def _note(text: object) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
