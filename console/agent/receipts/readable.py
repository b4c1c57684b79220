"""Whether a table can still be read as of a version, and whether rows were taken out of it since. From its log alone."""

import time
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.store import log
from console.errors import RegionError
from console.model.receipt import Place


@dataclass(frozen=True, slots=True)
class Gone:
    """Why a version cannot be read, "" where it can; `table`: nothing of the table is left to look at either."""

    why: str = ""
    table: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """What took rows out since a version. others, ours: by whose commits; vague: the log no longer tells;
    quiet: nothing did."""

    others: str = ""
    ours: str = ""
    vague: str = ""
    quiet: str = ""


def unreadable(path: str, place: Place) -> Gone:
    """Whether version `place.version` (and `place.before`) of a table can be read, file by file."""
    if not log.exists(path):
        return Gone("its table is gone: `console cleanup` drops versions that no release names", table=True)
    if log.table_id(path) != place.id:
        return Gone("another table stands in its place", table=True)
    for version in [place.version, place.before] if place.before >= 0 else [place.version]:
        if not log.covers(path, version):
            return Gone(f"its log no longer reaches back to version {version}")
        try:
            files = DeltaTable(path, version=version).get_add_actions().column("path").to_pylist()
        except (DeltaError, OSError):
            return Gone(f"its log no longer reaches back to version {version}")
        missing = sum(not Path(log.absolute_path(log.local(path), file)).exists() for file in files)
        if missing:
            return Gone(f"{missing} of {len(files)} files of version {version} were removed, as VACUUM does")
    return Gone()


def taken_out(path: str, version: int) -> Taken:
    """What happened to the rows of a version afterwards."""
    latest = log.latest_version(path)
    if latest < version:
        return Taken(others=f"the table ends at version {latest}, before the receipt's")
    others: list[log.Commit] = []
    ours: list[log.Commit] = []
    try:
        for commit in log.commits(path, version + 1, latest):
            if commit.kind == "rewrite":
                (ours if commit.is_retention else others).append(commit)
    except RegionError as error:
        return Taken(vague=f"what happened since version {version} cannot be told: {error}")
    if others:
        first = others[0]
        when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(first.at_ms / 1000))
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        return Taken(others=f"version {first.version} ({first.operation}, {when}){more} took rows out, not by console")
    if ours:
        kept = ours[-1].note.get("keep", "a day")
        return Taken(ours=f"retention has deleted the days before {kept} since version {version}")
    return Taken(quiet=f"nothing was taken out since version {version}, {latest - version} commits ago")
