"""Cleanup: releases that nobody can return to, and the versions that only they name."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from console.agent.store.ledger import Releases, StoredRelease
from console.agent.store.survey import drop_version
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
    """The releases that nobody can return to any more, and the versions that only they name.

    previous  include the release to which a rollback would return
    building  id of the release of the rollout in progress; any other preview was left behind by an agent that died
    """
    states = ("retired", "previous", "preview") if previous else ("retired", "preview")
    doomed = tuple(stored for stored in releases.all() if stored.row.state in states and stored.row.id != building)
    ids = {stored.row.id for stored in doomed}
    paths = {path for stored in doomed for path in own_versions(releases, stored.release, ids)}
    return Superseded(doomed, tuple(sorted(paths)))


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
    warehouse: Path, releases: Releases, doomed: Superseded, release_feeds: Callable[[], None]
) -> tuple[str, ...]:
    """Retire the superseded releases, delete their versions and forget them; safe to repeat after a death anywhere.

    release_feeds  returns when the follower no longer uses a version of a retired release
    returns        the paths of the versions that were there and are deleted now
    """
    for stored in doomed.releases:
        releases.mark(stored.row.id, "retired")
    release_feeds()
    dropped = tuple(path for path in doomed.versions if drop_version(warehouse, path))
    for stored in doomed.releases:  # last: after a death before this, the next cleanup still knows what to delete
        releases.drop(stored.row.id)
    return dropped


def drop_preview(warehouse: Path, releases: Releases, release: str, release_feeds: Callable[[], None]) -> None:
    """Delete what was built for a release that never became live, and forget the release; nothing if it is no preview.

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
