"""The base of a plan without contact to a region: a snapshot, an older commit of the files, or both."""

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from console.cli.commands.review.snapshots import Snapshot, load_snapshot
from console.cli.wiring import OpenProject
from console.errors import DataError, Problems, UsageError
from console.model.live import Live, TableStats
from console.model.pipeline import Pipeline
from console.model.plan import numbered
from console.model.region import Region
from console.model.schema import Column, Table
from console.project import Project, load
from console.runner.region_planner import RegionPlanner

_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Base:
    """Returns the live state of a region; either part may be absent.

    old  the project as of an older commit
    ref  that commit, as the operator named it
    """

    planner: RegionPlanner
    snapshot: Snapshot | None = None
    old: Project | None = None
    ref: str = ""

    def live(self, region: Region, pipeline: Pipeline) -> Live:
        """The known state of the region.

        raises  Conflict for a snapshot that is too old; Problems if the older commit itself is invalid
        """
        known = self.snapshot.of(region.name, pipeline) if self.snapshot else None
        if self.old is None:
            assert known is not None
            return known
        before = self.old.desired.get((pipeline.name, region.name))
        stats = known.stats if known else _assumed(pipeline, before)
        bare = Live(region=region.name, pipeline=pipeline.name, release=None, stats=stats)
        if before is None:
            return bare
        return self._promoted(before, replace(bare, stats=_declared(before)), region, known)

    def _promoted(self, before: Pipeline, bare: Live, region: Region, known: Live | None) -> Live:
        """The region as if the older commit were live in it, with the sizes from the snapshot."""
        try:
            release = numbered(self.planner.plan(before, bare, region), 1).release
        except Problems as error:
            hint = "name a commit whose files are valid"
            raise DataError(f"at {self.ref}: {error.problems[0]}", hint=hint) from None
        stats_of = {stats.name: stats for stats in known.stats} if known else {}
        stats = tuple(
            replace(stats_of[state.table.name], columns=state.version.columns, partition_by=state.version.partition_by)
            if state.table.name in stats_of and state.table.kind != "landing"
            else stats_of.get(state.table.name) or _empty(state.table, state.version.path, state.version.columns)
            for state in release.tables
        )
        rate, free = (known.rows_per_second, known.free_bytes) if known else (0.0, 0)
        return replace(bare, release=release, stats=stats, rows_per_second=rate, free_bytes=free)


def _declared(pipeline: Pipeline) -> tuple[TableStats, ...]:
    return tuple(_empty(table, table.name, table.columns) for table in pipeline.tables if table.kind == "landing")


def _assumed(pipeline: Pipeline, before: Pipeline | None) -> tuple[TableStats, ...]:
    """Landing tables as declared: without an answer from a region, the files are trusted."""
    old = {table.name for table in before.tables} if before else set()
    return tuple(stats for stats in _declared(pipeline) if stats.name not in old)


def _empty(table: Table, path: str, columns: tuple[Column, ...]) -> TableStats:
    return TableStats(
        name=table.name,
        path=path,
        version=0,
        rows=0,
        bytes=0,
        files=0,
        columns=columns,
        partition_by=table.partition_by,
    )


def believed(live: Live, pipeline: Pipeline) -> Live:
    """The same with every column of the landing tables that the files declare now: without a snapshot the files are trusted."""
    fresh = {table.name: table for table in pipeline.tables if table.kind == "landing"}
    stats = [_widened(stats, fresh[stats.name]) if stats.name in fresh else stats for stats in live.stats]
    known = {entry.name for entry in stats}
    stats += [entry for entry in _declared(pipeline) if entry.name not in known]
    return replace(live, stats=tuple(stats))


def _widened(stats: TableStats, table: Table) -> TableStats:
    now = {column.name.lower(): column for column in table.columns}
    kept = [now.pop(column.name.lower(), column) for column in stats.columns]
    return replace(stats, columns=(*kept, *now.values()))


@contextmanager
def base(project: OpenProject, against: Path | None, ref: str | None) -> Iterator[Base]:
    """Both parts, opened; the older commit is unpacked for as long as the body runs."""
    snapshot = load_snapshot(against) if against else None
    if ref is None:
        yield Base(project.planner, snapshot)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Base(project.planner, snapshot, _at(project.files.root, ref, Path(folder)), ref)


def _at(root: Path, ref: str, folder: Path) -> Project:
    """The project's files as of a commit.

    raises  UsageError if git does not know it; DataError if the files were wrong then
    """
    if ref.startswith("-"):
        raise UsageError(f"{ref!r} is not a commit", hint="--from-git main")
    top = Path(_git(root, "rev-parse", "--show-toplevel").decode().strip())
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").decode().strip()
    below = root.relative_to(top.resolve()).as_posix() if root != top.resolve() else "."
    parts = [name for name in ("regions", "plans") if _git(root, "ls-tree", "--name-only", commit, f"./{name}")]
    if parts:
        packed = _git(root, "archive", "--format=tar", commit, *parts)
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(folder, filter=_closed)
    if len(parts) < 2:
        raise DataError(f"at {ref}: {below} holds no regions/ and plans/", hint="name a later commit")
    try:
        return load(folder)
    except Problems as error:
        raise DataError(f"at {ref}: {error.problems[0]}", hint="name a commit whose files are valid") from None


def _closed(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """A file as git wrote it, a folder as its owner's alone, regardless of the umask: files that everyone may write are not read."""
    kept = tarfile.data_filter(member, folder)
    return kept.replace(mode=0o700, deep=False) if kept.isdir() else kept


def _git(root: Path, *words: str) -> bytes:
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git gave no answer: {error}", hint="--from-git needs git and a clone") from None
    if done.returncode:
        stderr = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = stderr[-1] if stderr else f"unknown: {words[-1]}"
        raise UsageError(f"git {words[0]}: {why}", hint="a commit, branch or tag of this clone; fetch it first")
    return done.stdout
