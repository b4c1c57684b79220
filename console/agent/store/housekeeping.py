"""What may go: versions that no kept release names."""

from collections.abc import Set

from console.agent.store.ledger import Releases, StoredRelease
from console.model.live import Release


def superseded(
    releases: Releases, *, previous: bool, building: str = ""
) -> tuple[tuple[StoredRelease, ...], tuple[str, ...]]:
    """Releases that nobody can go back to any more, and the versions that only they name.

    previous  count the one a rollback would return to among them
    building  the release of the rollout under way; any other preview was left behind by an agent that died
    """
    states = ("retired", "previous", "preview") if previous else ("retired", "preview")
    doomed = tuple(held for held in releases.all() if held.row.state in states and held.row.id != building)
    gone = {held.row.id for held in doomed}
    paths = {path for held in doomed for path in own_versions(releases, held.release, gone)}
    return doomed, tuple(sorted(paths))


def own_versions(releases: Releases, release: Release, gone: Set[str]) -> tuple[str, ...]:
    """Version paths of a release that no release outside `gone` names; landing tables are never among them."""
    kept = {state.version.path for held in releases.all() if held.row.id not in gone for state in held.release.tables}
    return tuple(
        state.version.path
        for state in release.tables
        if state.table.kind != "landing" and state.version.path not in kept and "/" in state.version.path
    )
