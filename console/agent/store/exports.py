"""Output folders of sinks: below the warehouse, replaced as a whole, and only if our mark shows that they are ours.

In a bucket no folder can be replaced, but an object can: the output is one file, which gets the name of the last one
(docs/stores.md). The path comes from the operator's file, and may already hold a table, another pipeline's output or foreign files. So
each output has a mark, and a folder without one is refused before anything is read or written.
"""

import json
import shutil
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console import crash
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits
from console.errors import DataError, RegionError

MARK = "_CONSOLE_SINK"  # beside Spark's `_SUCCESS`: readers of such folders skip names that begin with `_`
_FRESH, _OLD = "fresh", "old"
_KEPT = "_kept"  # by which a folder in a bucket is there: Spark would make it by an object that the agent's client cannot delete
_FILE = "part-00000"  # of an output in a bucket, with the suffix of its format
_export_lock = threading.Lock()  # one export at a time: two exports of one sink would collide in its folder


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """A sink's output folder. `root` and `target` are resolved, so that no link leads outside the warehouse."""

    root: Path
    target: Path
    pipeline: str
    sink: str

    @property
    def stage(self) -> Path:
        """Staging folder beside the target, so that a rename moves its content into place."""
        return self.target.with_name(f".{self.target.name}.console")


def output(warehouse: Path, path: str, pipeline: str, sink: str) -> ExportTarget:
    """A sink's target. raises  DataError for a path that is not below the warehouse"""
    root = warehouse.resolve()
    target = (root / path).resolve()
    if not target.is_relative_to(root) or target == root or "_console" in target.relative_to(root).parts:
        raise DataError(f"sink {sink}: {path} is not below the warehouse")
    return ExportTarget(root, target, pipeline, sink)


def put(export: ExportTarget, write: Callable[[Path], int]) -> int:
    """Write a folder beside the target, then move it into the target's place.

    write    fills the given folder; returns the rows written
    returns  the rows written
    raises   DataError E_SINK_TAKEN if the target holds anything but an output of this pipeline; nothing was touched
    """
    with _export_lock:
        if isinstance(export.target, ObjectPath):
            return _put_in_bucket(export, export.target, write)
        _check_free(export)
        _clear(export)
        export.stage.mkdir(parents=True, exist_ok=True)
        (export.stage / MARK).touch()
        rows = write(export.stage / _FRESH)
        mark = {"format_version": 1, "pipeline": export.pipeline, "sink": export.sink}
        (export.stage / _FRESH / MARK).write_text(json.dumps(mark))
        _check_free(export)  # again: writing may have taken an hour
        if export.target.exists():
            export.target.rename(export.stage / _OLD)
        crash.point("before-sink")
        (export.stage / _FRESH).rename(export.target)
        crash.point("after-sink")
        _clear(export)
        return rows


def _put_in_bucket(export: ExportTarget, target: ObjectPath, write: Callable[[Path], int]) -> int:
    """As `put`. Spark writes the file beside the target, whichever host it runs on, and it is copied to its name in one request: a
    reader of that name finds the old output or the new one. Writing takes longer than a lease is checked for, a copy does not.
    """
    _check_free(export)
    _clear_stage(export)
    commits.check_tenure()
    (export.stage / MARK).touch()
    # of each run another one: what a late job of an earlier run still writes is in nobody's output
    folder = export.stage / uuid.uuid4().hex
    (folder / _KEPT).touch()
    rows = write(folder)
    staged = _only_part(export, folder)
    _check_free(export)
    commits.check_tenure()
    # before the file: a folder with a file and no mark would be taken for somebody else's
    (target / MARK).write_text(json.dumps({"format_version": 1, "pipeline": export.pipeline, "sink": export.sink}))
    fresh = target / f"{_FILE}{staged.suffix}"
    crash.point("before-sink")
    commits.check_tenure()
    target.objects.copy(_key(staged), _key(fresh))
    crash.point("after-sink")
    others = {entry.key for entry in target.listed()} - {_key(fresh), _key(target / MARK)}
    target.objects.delete(sorted(others), commits.check_tenure)  # of another format
    _clear_stage(export)
    return rows


def _only_part(export: ExportTarget, folder: Path) -> Path:
    """The file that Spark wrote. raises  RegionError E_SINK_FILES"""
    parts = sorted(path for path in folder.iterdir() if path.name.startswith("part-"))
    if len(parts) != 1:
        raise RegionError(
            f"sink {export.sink}: Spark wrote {len(parts)} files, and an output in a bucket is one; nothing was replaced",
            hint="leave spark.sql.files.maxRecordsPerFile out of the region's spark.conf",
            code="E_SINK_FILES",
        )
    return parts[0]


def _clear_stage(export: ExportTarget) -> None:
    """Delete what a run that died has left beside the target."""
    if isinstance(export.stage, ObjectPath) and (export.stage / MARK).is_file():
        export.stage.delete_below(commits.check_tenure)
        if export.stage.exists():  # such an object is left, where a server died in the middle
            (export.stage / MARK).touch()


def _key(path: Path) -> str:
    assert isinstance(path, ObjectPath)
    return path.key


def _clear(export: ExportTarget) -> None:
    """Remove an export's staging folder; an export that died between its two renames gets its old output back."""
    if not (export.stage / MARK).is_file():
        return
    if (export.stage / _OLD).is_dir() and not export.target.exists():
        (export.stage / _OLD).rename(export.target)
    for part in (export.stage / _FRESH, export.stage / _OLD):
        if part.is_dir():
            shutil.rmtree(part)
    (export.stage / MARK).unlink()  # last: without it the rest would never be deleted
    export.stage.rmdir()


def _check_free(export: ExportTarget) -> None:
    """Check that the target may be replaced. raises  DataError E_SINK_TAKEN"""
    if why := next(filter(None, (_not_ours(export), _blocked_above(export), _stage_blocked(export))), ""):
        raise DataError(
            f"sink {export.sink}: {why}; nothing was written",
            hint="give the sink another path, or move away what lies there (an older version's output carries no mark)",
            code="E_SINK_TAKEN",
        )


def _not_ours(export: ExportTarget) -> str:
    """The reason why the target does not belong to this pipeline, or ""."""
    target = export.target
    if not target.exists():
        return ""
    if not target.is_dir():
        return f"{target} is a file"
    if (target / "_delta_log").exists():
        return f"{target} is a Delta table"
    try:
        mark = json.loads((target / MARK).read_text())
        owner = str(mark["pipeline"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"{target} was not written by a sink (it has no {MARK})"
    if owner != export.pipeline:
        return f"{target} belongs to pipeline {owner:.60}"
    if inside := next((entry.name for entry in target.iterdir() if entry.is_dir()), ""):
        return f"{target} holds a folder that no sink wrote, {inside!r:.60}"
    return ""


def _blocked_above(export: ExportTarget) -> str:
    """The reason why no folder may be created there: one above it is a table, a sink's output or a file; or ""."""
    for folder in export.target.parents:
        if folder == export.root:
            break
        if (folder / "_delta_log").exists() or (folder / MARK).exists():
            return f"{export.target} lies inside of {folder}, which is a table or another sink's output"
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file"
    return ""


def _stage_blocked(export: ExportTarget) -> str:
    blocked = export.stage.exists() and (
        not export.stage.is_dir() or (any(export.stage.iterdir()) and not (export.stage / MARK).is_file())
    )
    return f"{export.stage} is in the way" if blocked else ""
