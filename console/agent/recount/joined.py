"""The table versions that live commits joined, and which of them can still be read."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.object_store import object_path
from console.agent.recount.pinned_tables import Pinned
from console.agent.recount.sample import LiveCommit
from console.agent.store import log, log_files
from console.model.live import TableState

JoinedTable = tuple[TableState, str]  # with its path


@dataclass(frozen=True, slots=True)
class Checkable:
    """The live commits whose joined versions can be read, and why others cannot, in one line."""

    commits: tuple[LiveCommit, ...]
    gone: str = ""


def joined_of(commit: LiveCommit, names: Sequence[str], tables: Sequence[JoinedTable]) -> tuple[Pinned, ...] | None:
    """The table versions that a commit joined; None if they are not recorded.

    names   of the joined tables
    tables  all known versions of these
    """
    pins: list[Pinned] = []
    for name in names:
        known = [each for each in tables if each[0].table.name == name]
        if path := (commit.joined or {}).get(name, ""):
            known = [each for each in known if each[0].version.path == path]
        elif len({path for _, path in known}) > 1:
            return None  # an older console recorded only the number, which may belong to another version
        if not known or commit.joins is None or name not in commit.joins:
            return None
        pins.append(Pinned(*known[0], commit.joins[name]))
    return tuple(pins)


def checkable(commits: Sequence[LiveCommit], names: Sequence[str], tables: Sequence[JoinedTable]) -> Checkable:
    """Leave out commits that joined versions which are gone. commits: oldest first"""
    if not names:
        return Checkable(tuple(commits))
    left = list(commits)
    reasons: list[tuple[LiveCommit, str]] = []
    unnoted = [commit for commit in left if joined_of(commit, names, tables) is None]
    if unnoted:
        which = ", ".join(names)
        why = f"the version of {which} that was read is not recorded, or was dropped"
        reasons.append((unnoted[-1], why))
        left = [commit for commit in left if commit not in unnoted]
    for at in range(len(names)):
        first, why = _first_readable(left, [_pin(commit, names, tables, at) for commit in left])
        if first:
            reasons.append((left[first - 1], why))
            left = left[first:]
    if not reasons:
        return Checkable(tuple(left))
    newest, why = max(reasons, key=lambda each: each[0].version)
    until = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(newest.at_ms / 1000))
    return Checkable(tuple(left), f"rows that arrived until {until} cannot be checked again: {why}")


def _pin(commit: LiveCommit, names: Sequence[str], tables: Sequence[JoinedTable], at: int) -> Pinned:
    pins = joined_of(commit, names, tables)
    assert pins is not None
    return pins[at]


def _first_readable(commits: Sequence[LiveCommit], pins: Sequence[Pinned]) -> tuple[int, str]:
    """Number of commits before the first one whose pin can be read, and why the last of those cannot.

    Older versions disappear first, by log clean-up and by VACUUM.
    """
    low, high, why = 0, len(commits), ""
    while low < high:
        middle = (low + high) // 2
        if reason := unreadable(pins[middle]):
            low, why = middle + 1, reason
        else:
            high = middle
    return low, why


def unreadable(pin: Pinned) -> str:
    """Why a table cannot be read as of its version; "" if it can."""
    name = f"{pin.state.table.name} as of version {pin.version}"
    if not log.exists(pin.path):
        return f"the version of {pin.state.table.name} that was joined was dropped"
    try:
        known = log.covers(pin.path, pin.version)
        files = DeltaTable(pin.path, version=pin.version).get_add_actions().column("path").to_pylist() if known else []
    except (DeltaError, OSError):
        known, files = False, []
    if not known:
        return f"{name} is gone: its log no longer reaches back"
    missing = sum(
        not object_path.place(log.absolute_path(log_files.root_of(pin.path), file)).exists() for file in files
    )
    return f"{name} is gone: {missing} of {len(files)} files were removed, as VACUUM does" if missing else ""


def all_versions(own: Sequence[JoinedTable], others: Iterable[JoinedTable]) -> tuple[JoinedTable, ...]:
    """A feed's joined tables, and the versions of these in other releases."""
    names = {state.table.name for state, _ in own}
    by_path = {path: (state, path) for state, path in others if state.table.name in names and state.version.path}
    by_path |= {path: (state, path) for state, path in own}
    return tuple(by_path.values())
