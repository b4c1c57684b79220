"""Renews the proof of the way back each minute, for every pipeline with a previous release, in one thread."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from console.agent.failure import cause
from console.agent.object_store.object_path import in_bucket
from console.agent.pipeline import PipelineController
from console.agent.queries import copy_path
from console.agent.store import log
from console.agent.store.ledger import StoredRelease
from console.agent.way_back.endpoints import EndpointRound
from console.agent.way_back.feeds import ReleaseFeeds
from console.model.live import Release
from console.model.way_back import PROOF_SECONDS, WayBackFinding, WayBackProof, proof

HOUR = 3600.0


@dataclass(slots=True, kw_only=True)
class _Proven:
    """State of one pipeline. releases: modification time of its release table's log;  due: monotonic"""

    feeds: ReleaseFeeds
    endpoints: EndpointRound
    releases: int = -1
    due: float = 0.0
    proof: WayBackProof | None = None
    idle: bool = False  # it has no previous release


@dataclass(slots=True, kw_only=True)
class WayBackProver:
    """One for all pipelines of a region.

    keep_hours  the rollback window
    report      called with (pipeline, level, text)
    """

    controllers: Callable[[], Iterable[PipelineController]]
    keep_hours: float
    report: Callable[[str, str, str], None]
    _known: dict[str, _Proven] = field(default_factory=dict)
    _thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def proof(self, pipeline: str) -> WayBackProof | None:
        """The newest one; None without a previous release, and before the first proof."""
        known = self._known.get(pipeline)
        return known.proof if known else None

    def tick(self) -> None:
        """Called every second: start the due proofs in a thread of their own."""
        if self.running:
            return
        due = [controller for controller in self.controllers() if self._due(controller)]
        if due:
            self._thread = threading.Thread(target=self._prove_all, args=(due,), name="way back", daemon=True)
            self._thread.start()

    def _due(self, controller: PipelineController) -> bool:
        known = self._of(controller)
        path = controller.releases.path
        if in_bucket(str(path)):
            if time.monotonic() < known.due:  # a request each second would be a lot for what it tells
                return False
            releases = log.latest_version(str(path), missing_ok=True)
            if releases < 0 or (known.idle and releases == known.releases):
                known.due = time.monotonic() + PROOF_SECONDS
                return False
        else:
            try:
                releases = os.stat(path / "_delta_log").st_mtime_ns
            except OSError:  # nothing was ever released
                return False
        if releases != known.releases:
            known.releases, known.due, known.idle = releases, 0.0, False
        return not known.idle and time.monotonic() >= known.due

    def _of(self, controller: PipelineController) -> _Proven:
        if controller.pipeline not in self._known:
            feeds = ReleaseFeeds(controller.pipeline, controller.feeds.follower, controller.path)
            self._known[controller.pipeline] = _Proven(feeds=feeds, endpoints=EndpointRound(controller.spark))
        return self._known[controller.pipeline]

    def _prove_all(self, controllers: Iterable[PipelineController]) -> None:
        for controller in controllers:
            known = self._of(controller)
            try:
                self.prove(controller)
            except Exception as error:  # a full disk, for example: retried in a minute
                known.due = time.monotonic() + PROOF_SECONDS
                self.report(controller.pipeline, "warning", f"the way back is not proven: {cause(error)}")

    def prove(self, controller: PipelineController) -> WayBackProof | None:
        """Make one proof; None without a previous release, or while an operation runs on the pipeline."""
        known = self._of(controller)
        if not controller.lock.acquire(blocking=False):  # a promotion moves feeds: no proof meanwhile
            return None
        try:
            stored = {each.row.state: each for each in controller.releases.all()}
            live, previous = stored.get("live"), stored.get("previous")
            if live is None or previous is None:
                known.proof, known.idle = None, True
                return None
            feeds, findings = known.feeds.look(live.release, previous.release)
        finally:
            controller.lock.release()
        began, known.due = time.time(), time.monotonic() + PROOF_SECONDS
        files, more = controller.kept_files.look(previous.release)
        answers = known.endpoints.ask(previous.release, _paths(controller, previous.release), controller.recorder.plan)
        if controller.releases.in_state("previous") != previous:  # a promotion, rollback or cleanup came in between
            known.due = 0.0
            return None
        known.proof = self._proof(live, previous, began, (*findings, *more, *answers), feeds, files)
        return known.proof

    def _proof(
        self,
        live: StoredRelease,
        previous: StoredRelease,
        at: float,
        findings: tuple[WayBackFinding, ...],
        feeds: int,
        files: int,
    ) -> WayBackProof:
        return proof(
            previous.row.id,
            at,
            findings,
            until=live.row.at + self.keep_hours * HOUR,
            feeds=feeds,
            files=files,
            endpoints=len(previous.release.endpoints),
        )


def _paths(controller: PipelineController, release: Release) -> dict[str, str]:
    """Absolute paths of the tables that its endpoints may read."""
    tables = {state.table.name: controller.path(state.version.path) for state in release.tables}
    copies = {copy.into: copy_path(controller.warehouse, copy.into) for copy in release.copies}
    return {**copies, **tables}
