"""Cleanup: releases to which no rollback leads, and the versions that only they name."""

import shutil
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from console import crash
from console.agent.store.ledger import Releases, StoredRelease
from console.errors import RegionError
from console.model.live import Release


@dataclass(frozen=True, slots=True)
class Superseded:
    """What a cleanup removes.

    releases  their rows in the release table
    versions  version paths that only these releases name, in order; never a landing table's
    """

    releases: tuple[StoredRelease, ...]
    versions: tuple[str, ...]


def superseded(releases: Releases, *, previous: bool, building: str = "") -> Superseded:
    """The releases to which no rollback leads any more, and the versions that only they name.

    previous  include the release to which a rollback would return
    building  id of the release of the rollout in progress; any other preview is left over from an agent that died
    """
    states = ("retired", "previous", "preview") if previous else ("retired", "preview")
    removable = tuple(stored for stored in releases.all() if stored.row.state in states and stored.row.id != building)
    ids = {stored.row.id for stored in removable}
    paths = {path for stored in removable for path in own_versions(releases, stored.release, ids)}
    return Superseded(removable, tuple(sorted(paths)))


def own_versions(releases: Releases, release: Release, gone: Set[str]) -> tuple[str, ...]:
    """Version paths of a release that no release outside `gone` names; landing tables are never among them."""
    kept = {
        state.version.path for stored in releases.all() if stored.row.id not in gone for state in stored.release.tables
    }
    return tuple(
        state.version.path
        for state in release.tables
        if state.table.kind != "landing" and state.version.path not in kept and "/" in state.version.path
    )


def clean_up(
    warehouse: Path, releases: Releases, removable: Superseded, release_feeds: Callable[[], None]
) -> tuple[str, ...]:
    """Retire the superseded releases, delete their versions and drop their rows; safe to repeat after a crash anywhere.

    release_feeds  returns when the follower no longer uses a version of a retired release
    returns        paths of the versions that existed and were deleted
    """
    for stored in removable.releases:
        releases.mark(stored.row.id, "retired")
    release_feeds()
    dropped = tuple(path for path in removable.versions if drop_version(warehouse, path))
    for stored in removable.releases:  # last: after a crash before this, the next cleanup still knows what to delete
        releases.drop(stored.row.id)
    return dropped


def drop_preview(warehouse: Path, releases: Releases, release: str, release_feeds: Callable[[], None]) -> None:
    """Delete the versions built for a release that never became live, and its row; does nothing if it is not a preview.

    release        its id
    release_feeds  returns when the follower no longer uses a version of it
    """
    stored = next((each for each in releases.all() if each.row.id == release and each.row.state == "preview"), None)
    if stored is None:
        return
    paths = own_versions(releases, stored.release, {release})
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
    dropped = list(target.parent.glob(f".dropped-{target.name}-*"))  # left by an agent that died during the deletion
    if target.exists():
        dropped.append(target.with_name(f".dropped-{target.name}-{uuid4().hex}"))
        crash.point("before-drop")
        target.rename(dropped[-1])
        crash.point("after-drop")
    for place in dropped:
        shutil.rmtree(place)
    return bool(dropped)
