"""Cleanup: releases that no rollback can return to, and the versions that only they name."""

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from console import crash
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits, log
from console.agent.store.landing_versions import carry_ids, versions_of
from console.agent.store.ledger import Releases, StoredRelease
from console.errors import RegionError
from console.model.landing import is_later_version
from console.model.live import Release
from console.paths import version_path

LeftOut = tuple[str, str]  # rollout, landing table


@dataclass(frozen=True, slots=True)
class LastCopy:
    """A landing table's version with rows or values that no other one has. what: in words;  by: the release with the relay"""

    release: str
    table: str
    what: str
    by: str

    def __str__(self) -> str:
        return f"{self.release}: its version of {self.table} holds {self.what}"


@dataclass(frozen=True, slots=True)
class Superseded:
    """The releases and versions that a cleanup removes.

    releases  their rows in the release table
    versions  version paths that only these releases name, in order; of landing tables only later versions
    kept      last copies, whose releases are kept
    """

    releases: tuple[StoredRelease, ...]
    versions: tuple[str, ...]
    kept: tuple[LastCopy, ...] = ()


def superseded(
    releases: Releases,
    *,
    previous: bool,
    building: str = "",
    let_go: Collection[str] = (),
    left_out: Collection[LeftOut] = (),
    spared: Set[str] = frozenset(),
    staying: Set[str] = frozenset(),
) -> Superseded:
    """The releases that no rollback can return to any more, and the versions that only they name.

    previous     include the release to which a rollback would return
    building     id of the release of the rollout in progress; any other preview is a leftover of a dead agent
    let_go       landing tables whose last copies are deleted as well
    left_out     rows in quarantine
    spared       paths that sandboxes name: these versions go with the last sandbox
    staying      ids of releases that are kept: those on hold
    """
    states = ("retired", "previous", "preview") if previous else ("retired", "preview")
    stored_releases = releases.all()
    removable = tuple(
        each for each in stored_releases if each.row.state in states and each.row.id not in {building, *staying}
    )
    copies = [each for each in _last_copies(stored_releases, left_out) if each.table not in let_go]
    gone = {each.row.id for each in removable}
    kept = tuple(each for each in copies if each.release in gone)
    needed = {release for each in kept for release in (each.release, each.by)}
    removable = tuple(each for each in removable if each.row.id not in needed)
    ids = {stored.row.id for stored in removable}
    paths = {path for stored in removable for path in own_versions(releases, stored.release, ids, spared)}
    return Superseded(removable, tuple(sorted(paths)), kept)


def _last_copies(releases: Sequence[StoredRelease], left_out: Collection[LeftOut]) -> Iterator[LastCopy]:
    """Last copies in formerly live releases whose landing versions are not the live ones."""
    live = next((each.release for each in releases if each.row.state == "live"), None)
    spared = {state.version.path for state in (live.tables if live else ())}
    once_live = [each for each in releases if each.row.state != "preview"]  # the rows of a preview are copies
    for by in once_live:
        for relay in by.release.relays:
            newer = by.release.table(relay.table)
            assert newer is not None
            alone = {newer.version.path: "values"} if relay.lost else {}
            if (by.rollout, relay.table) in left_out and is_later_version(relay.older):
                alone[relay.older] = "rows that are in quarantine"
            for release in once_live:
                for path in (alone.keys() - spared) & {state.version.path for state in release.release.tables}:
                    yield LastCopy(release.row.id, relay.table, alone[path], by.row.id)


def own_versions(
    releases: Releases, release: Release, gone: Set[str], spared: Set[str] = frozenset()
) -> tuple[str, ...]:
    """Version paths of a release that no release outside `gone` names; of landing tables only later versions.

    spared  paths that sandboxes name
    """
    kept = {
        state.version.path for stored in releases.all() if stored.row.id not in gone for state in stored.release.tables
    } | spared
    return tuple(
        state.version.path
        for state in release.tables
        if (state.table.kind != "landing" or is_later_version(state.version.path))
        and state.version.path not in kept
        and "/" in state.version.path
    )


def clean_up(
    warehouse: Path, releases: Releases, removable: Superseded, release_feeds: Callable[[], None]
) -> tuple[str, ...]:
    """Retire the superseded releases, delete their versions and drop their rows; safe to repeat after a crash anywhere.

    release_feeds  waits until the follower no longer uses a version of a retired release
    returns        paths of the versions that existed and were deleted
    """
    for stored in removable.releases:
        releases.mark(stored.row.id, "retired")
    release_feeds()
    for path in removable.versions:
        _keep_ids(warehouse, releases, path)
    dropped = tuple(path for path in removable.versions if drop_version(warehouse, path))
    for stored in removable.releases:  # last: after a crash before this, the next cleanup still knows what to delete
        releases.drop(stored.row.id)
    return dropped


def _keep_ids(warehouse: Path, releases: Releases, path: str) -> None:
    """Carry the batch and load ids of a landing version over to the live one."""
    live, stored = releases.in_state("live"), [each.release for each in releases.all()]
    source = version_path(warehouse, path)
    if not is_later_version(path) or live is None or not log.exists(source):
        return
    same = versions_of(stored, path)
    for state in live.release.tables:
        if state.version.path in same:
            carry_ids(source, version_path(warehouse, state.version.path))


def drop_preview(
    warehouse: Path,
    releases: Releases,
    release: str,
    release_feeds: Callable[[], None],
    spared: Set[str] = frozenset(),
) -> None:
    """Delete the versions built for a release that never became live, and its row; does nothing if it is not a preview.

    release        its id
    release_feeds  waits until the follower no longer uses a version of it
    spared         paths that sandboxes name
    """
    stored = next((each for each in releases.all() if each.row.id == release and each.row.state == "preview"), None)
    if stored is None:
        return
    paths = own_versions(releases, stored.release, {release}, spared)
    release_feeds()
    for path in paths:
        drop_version(warehouse, path)
    releases.drop(release)


def drop_version(warehouse: Path, path: str) -> bool:
    """Delete a version's directory; only in a warehouse with our marker, and never a landing table.

    returns  whether there was anything to delete
    raises   RegionError E_NOT_OURS
    """
    root = warehouse.resolve()
    target = (root / path).resolve()
    deletable = (root / "_console" / "marker.json").is_file() and target.is_relative_to(root)
    if not deletable or len(target.relative_to(root).parts) != 2 or "_console" in target.parts:
        raise RegionError(f"{path} is not a version of ours; nothing was deleted", code="E_NOT_OURS")
    if isinstance(target, ObjectPath):
        crash.point("before-drop")
        existed = target.delete_below(commits.check_tenure)
        crash.point("after-drop")
        return existed
    dropped = list(target.parent.glob(f".dropped-{target.name}-*"))  # left by an agent that died during the deletion
    if target.exists():
        dropped.append(target.with_name(f".dropped-{target.name}-{uuid4().hex}"))
        crash.point("before-drop")
        target.rename(dropped[-1])
        crash.point("after-drop")
    for place in dropped:
        shutil.rmtree(place)
    return bool(dropped)
