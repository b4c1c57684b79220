"""Verification of a linked history (`history: from now`) by the logs of both versions, without reading rows.

Rows that arrived later follow the new query and are recomputed like other live rows.
"""

from pathlib import Path

from console import paths
from console.agent.receipts.findings import Subject
from console.agent.receipts.readable import removals
from console.agent.rows.data_files import files_at
from console.agent.store import log
from console.errors import RegionError, Unreachable
from console.model.receipt import Finding

_LATER = "rows that arrived later follow the new query and are checked as live rows"


def check_files(warehouse: Path, target_path: str, subject: Subject) -> Finding:
    """Whether the new version's initial files are those of the older version as of the fence."""
    commit = _linking(target_path, subject.step)
    if commit is None:
        return subject.finding(None, "the commit that took the files over is gone from the log")
    version, source = int(commit.note["linked"]["version"]), str(commit.note["linked"]["of"])
    path = paths.version_path(warehouse, source)
    rows = sum(file.rows for file in commit.added)
    text = f"{rows:,} rows in {len(commit.added)} files were taken over from version {version} of {source}"
    try:
        older = files_at(path, version)
    except (RegionError, Unreachable, OSError) as error:
        return subject.finding(None, f"{text}, which can no longer be read: {error}; {_LATER}")
    theirs = sorted((Path(file.path).name, file.rows, file.bytes) for file in older)
    ours = sorted((Path(file.path).name.split("-", 2)[2], file.rows, file.bytes) for file in commit.added)
    if ours != theirs:
        return subject.finding(False, f"{text}, and {len(set(ours) ^ set(theirs))} of them are not that version's")
    return subject.finding(True, f"{text}, and are all of that version; {_LATER}")


def check_since(target_path: str, subject: Subject) -> Finding:
    """Whether rows were removed from the new version since."""
    commit = _linking(target_path, subject.step)
    if commit is None:
        return subject.finding(None, "the commit that took the files over is gone from the log")
    removed = removals(target_path, commit.version)
    if removed.by_others:
        return subject.finding(False, removed.by_others)
    unclear = removed.by_retention or removed.unknown
    return subject.finding(None if unclear else True, unclear or removed.none)


def _linking(target: str, step: str) -> log.Commit | None:
    """The commit that linked the files; None if the log no longer has it."""
    if not log.exists(target):
        return None
    for version in range(log.latest_version(target) + 1):
        try:
            commit = log.commit(target, version)
        except RegionError:
            continue  # cleaned up: commits before a checkpoint are deleted first
        if commit.note.get("linked") and commit.note.get("step") == step:
            return commit
    return None
