"""Whether the states of an aggregate may be merged now, from releases, positions and logs; where that cannot be shown, they are not.

What reads a pinned version keeps reading it. What reads rows as they come, or is about to compare or promote, must not find other
rows of the same values.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from console.agent.maintenance.vacuum import Need
from console.agent.pipeline import PipelineController
from console.agent.store import log, open_tables
from console.errors import ConsoleError
from console.model.event import ENDED
from console.model.live import Release, TableState
from console.model.merging import Merging


@dataclass(frozen=True, slots=True, kw_only=True)
class Mergeable:
    """How an aggregate's states are merged. passed: version that every feed below and every fence has passed"""

    merging: Merging
    passed: int


@dataclass(frozen=True, slots=True)
class NotMergeable:
    """Why an aggregate's states are not merged."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """All that is known of a region's readers.

    kept    of each pipeline, its kept releases and those of its previews
    needs   of a table's feeds and fences
    failed  pipelines that failed to load, whose readers are unknown
    """

    kept: Sequence[tuple[PipelineController, Sequence[Release]]]
    needs: Sequence[Need]
    failed: Sequence[str] = ()


def mergeable(controller: PipelineController, path: str, readers: Readers) -> Mergeable | NotMergeable | None:
    """Whether the states of a table of a pipeline may be merged; None for a table that is no aggregate.

    path  absolute
    """
    own = [state for each, releases in readers.kept if each is controller for state in _at(each, releases, path)]
    if not own or any(state.table.kind != "aggregate" for state in own):
        return None
    merging, *others = dict.fromkeys(state.merging for state in own)
    if merging is None or others:
        return NotMergeable("not every kept release records how all of its states unite")
    if why := _unclear(controller, path, readers, merging):
        return NotMergeable(why)
    latest = log.latest_version(path)
    return Mergeable(merging=merging, passed=min([latest, *(need.version for need in readers.needs)]))


def _unclear(controller: PipelineController, path: str, readers: Readers, merging: Merging) -> str:
    if readers.failed:
        return f"{', '.join(readers.failed)} failed to load, and may read it"
    if controller.recorder.status.state not in (*ENDED, "none"):
        return "a rollout is under way"
    for other, releases in readers.kept:
        if any(state.table.kind == "landing" for state in _at(other, releases, path)):
            return f"{other.pipeline} reads its stored rows"
    try:
        stored = {str(field["name"]) for field in json.loads(open_tables.schema_json(path))["fields"]}
    except ConsoleError as error:
        return str(error)
    return "" if stored == set(merging.columns) else "it stores other columns than its release names"


def _at(controller: PipelineController, releases: Iterable[Release], path: str) -> Iterable[TableState]:
    states = (state for release in releases for state in release.tables)
    return (state for state in states if state.version.path and controller.path(state.version.path) == path)
