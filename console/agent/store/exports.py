"""Where sinks leave their files: a folder below the warehouse, replaced as a whole, and only where our mark says it is ours.

A path is text in the operator's file; what lies there may be a table, another pipeline's or somebody's own. So each
output carries a mark, and what carries none is refused before anything is read or written.
"""

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console import crash
from console.errors import DataError

MARK = "_CONSOLE_SINK"  # beside Spark's `_SUCCESS`: readers of such folders pass over names that begin with `_`
_FRESH, _OLD = "fresh", "old"
_turn = threading.Lock()  # one export after the other: two of one sink would meet in its folder


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """One sink's folder. `root` and `target` are resolved: no link leads elsewhere."""

    root: Path
    target: Path
    pipeline: str
    sink: str

    @property
    def stage(self) -> Path:
        """Beside the target, so that a rename brings its content there."""
        return self.target.with_name(f".{self.target.name}.console")


def output(warehouse: Path, path: str, pipeline: str, sink: str) -> ExportTarget:
    """raises  DataError for a path that is not below the warehouse"""
    root = warehouse.resolve()
    target = (root / path).resolve()
    if not target.is_relative_to(root) or target == root or "_console" in target.relative_to(root).parts:
        raise DataError(f"sink {sink}: {path} is not below the warehouse")
    return ExportTarget(root, target, pipeline, sink)


def put(out: ExportTarget, write: Callable[[Path], int]) -> int:
    """Have a folder written beside the target, then put it in the target's place. Returns the rows that `write` tells.

    raises  DataError E_SINK_TAKEN where the target holds anything but an output of this pipeline; nothing was touched
    """
    with _turn:
        _see_free(out)
        _clear(out)
        out.stage.mkdir(parents=True, exist_ok=True)
        (out.stage / MARK).touch()
        rows = write(out.stage / _FRESH)
        mark = {"format_version": 1, "pipeline": out.pipeline, "sink": out.sink}
        (out.stage / _FRESH / MARK).write_text(json.dumps(mark))
        _see_free(out)  # again: writing may have taken an hour
        if out.target.exists():
            out.target.rename(out.stage / _OLD)
        crash.point("before-sink")
        (out.stage / _FRESH).rename(out.target)
        crash.point("after-sink")
        _clear(out)
        return rows


def _clear(out: ExportTarget) -> None:
    """Remove what an export left, finished or dead; one that died between its two renames gets its old output back."""
    if not (out.stage / MARK).is_file():
        return
    if (out.stage / _OLD).is_dir() and not out.target.exists():
        (out.stage / _OLD).rename(out.target)
    for part in (out.stage / _FRESH, out.stage / _OLD):
        if part.is_dir():
            shutil.rmtree(part)
    (out.stage / MARK).unlink()  # last: without it the rest would never be cleared
    out.stage.rmdir()


def _see_free(out: ExportTarget) -> None:
    """raises  DataError E_SINK_TAKEN"""
    if why := next(filter(None, (_foreign(out), _above(out), _staged(out))), ""):
        raise DataError(
            f"sink {out.sink}: {why}; nothing was written",
            hint="give the sink another path, or move away what lies there (an older version's output carries no mark)",
            code="E_SINK_TAKEN",
        )


def _foreign(out: ExportTarget) -> str:
    """Why the target is not this pipeline's to replace, or ""."""
    target = out.target
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
    if owner != out.pipeline:
        return f"{target} belongs to pipeline {owner:.60}"
    if inside := next((entry.name for entry in target.iterdir() if entry.is_dir()), ""):
        return f"{target} holds a folder that no sink wrote, {inside!r:.60}"
    return ""


def _above(out: ExportTarget) -> str:
    """Why nothing may be put where the target is: its folders on the way down are a table's, a sink's or files."""
    for folder in out.target.parents:
        if folder == out.root:
            break
        if (folder / "_delta_log").exists() or (folder / MARK).exists():
            return f"{out.target} lies inside of {folder}, which is a table or another sink's output"
        if folder.exists() and not folder.is_dir():
            return f"{folder} is a file"
    return ""


def _staged(out: ExportTarget) -> str:
    strange = out.stage.exists() and (
        not out.stage.is_dir() or (any(out.stage.iterdir()) and not (out.stage / MARK).is_file())
    )
    return f"{out.stage} is in the way" if strange else ""
