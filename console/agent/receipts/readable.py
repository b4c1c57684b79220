"""Whether a table can still be read as of a version, and whether rows were removed since: from its log alone."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.object_store import object_path
from console.agent.receipts.step_receipts import files_of_others
from console.agent.store import log, log_files, open_tables
from console.errors import RegionError
from console.model.receipt import Place


@dataclass(frozen=True, slots=True)
class Readability:
    """Why a version cannot be read, "" if it can.

    table_gone  the whole table is missing, or was replaced by another one
    """

    reason: str = ""
    table_gone: bool = False


@dataclass(frozen=True, slots=True)
class Removals:
    """Removal of rows since a version: one of the fields holds a sentence.

    by_others, by_retention  by foreign commits; by our own retention
    unknown                  the log no longer covers the time since
    none                     no rows were removed
    """

    by_others: str = ""
    by_retention: str = ""
    unknown: str = ""
    none: str = ""


def readability(path: str, place: Place) -> Readability:
    """Whether version `place.version` (and `place.before`) of a table can be read, file by file."""
    if not log.exists(path):
        return Readability("its table is gone: `console cleanup` drops versions that no release names", table_gone=True)
    if open_tables.table_id(path) != place.id:
        return Readability("another table is in its place", table_gone=True)
    for version in [place.version, place.before] if place.before >= 0 else [place.version]:
        if not log.covers(path, version):
            return Readability(f"its log no longer reaches back to version {version}")
        try:
            files = DeltaTable(path, version=version).get_add_actions().column("path").to_pylist()
        except (DeltaError, OSError):
            return Readability(f"its log no longer reaches back to version {version}")
        if missing := _missing(log.absolute_path(log_files.root_of(path), file) for file in files):
            return Readability(f"{missing} of {len(files)} files of version {version} were removed, as VACUUM does")
    return _of_others(path, place)


def _of_others(path: str, place: Place) -> Readability:
    """Whether the files of the commits that do not count can be read."""
    try:
        files = files_of_others(path, place)
    except RegionError as error:
        return Readability(f"the commits of other feeds are unknown: {error}")
    if missing := _missing(file.path for file in files):
        return Readability(f"{missing} of {len(files)} files of other feeds were removed, as VACUUM does")
    return Readability()


def _missing(files: Iterable[str]) -> int:
    return sum(not object_path.place(file).exists() for file in files)


def removals(path: str, version: int) -> Removals:
    """The causes of row removals from the table after a version."""
    latest = log.latest_version(path)
    if latest < version:
        return Removals(by_others=f"the table ends at version {latest}, before the receipt's")
    others: list[log.Commit] = []
    ours: list[log.Commit] = []
    try:
        for commit in log.commits(path, version + 1, latest):
            if commit.kind == "rewrite":
                (ours if commit.is_retention else others).append(commit)
    except RegionError as error:
        return Removals(unknown=f"changes since version {version} are unknown: {error}")
    if others:
        first = others[0]
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(first.at_ms / 1000))
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return Removals(
            by_others=f"version {first.version} ({first.operation}, {when}){more} removed rows, not by console"
        )
    if ours:
        kept = ours[-1].note.get("keep", "a day")
        return Removals(by_retention=f"retention has deleted the days before {kept} since version {version}")
    return Removals(none=f"no rows were removed since version {version}, {latest - version} commits ago")
