"""Pause, resume, retry, cancel and discard of a rollout: the states that permit each, and its effect."""

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never, get_args

from console.agent.execution.execution import Execution
from console.agent.rollout.followed_feeds import FollowedFeeds
from console.agent.rollout.ownership import in_progress, last_decision
from console.agent.rollout.recorder import Recorder
from console.agent.rollout.watched import is_watched, steering
from console.agent.store import housekeeping
from console.agent.store.ledger import Releases
from console.errors import Conflict, DataError
from console.model.breach import news_text
from console.model.event import Ended, Entered, Logged, Paused, Resumed, StepStarted
from console.model.status import Status, Verb
from console.model.step_id import VALIDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutControl:
    """Controls the rollout of one pipeline. The caller holds the pipeline's lock.

    spared  paths of versions that sandboxes name
    """

    warehouse: Path
    pipeline: str
    releases: Releases
    recorder: Recorder
    execution: Execution
    feeds: FollowedFeeds
    spared: Set[str] = frozenset()

    def apply(self, verb: Verb, by: str) -> Status:
        """Execute the verb; pausing twice changes nothing.

        raises  Conflict E_STATE if the rollout's state does not permit the verb
        """
        status = self.recorder.status
        if verb == "pause" and (
            status.held == "paused" or (is_watched(status, self.recorder.plan) and status.watched.held_by)
        ):
            return status
        if (steered := steering(status, self.recorder.plan, verb, by)) is not None:
            self.recorder.store(Logged(news_text(steered), "info", steered))
            return self.recorder.status
        self._check(verb, status)
        match verb:
            case "pause":
                self.execution.stop()
                self.recorder.store(Paused(by))
            case "resume":
                self._resume(by)
            case "retry":
                self._retry(status, by)
            case "cancel":
                self._abandon("cancelled", by)
            case "discard":
                self._abandon("discarded", by)
            case _:
                assert_never(verb)
        return self.recorder.status

    def _check(self, verb: Verb, status: Status) -> None:
        """raises Conflict E_STATE if the rollout's state does not permit the verb"""
        if _fits(verb, status):
            return
        state = f"{status.shown}{last_decision(status, self.recorder.progress())}"
        why = f"{self.pipeline} has had no rollout" if status.state == "none" else f"{self.pipeline} is {state}"
        raise Conflict(f"{verb} does not fit: {why}", hint="console status", code="E_STATE")

    def _resume(self, by: str) -> None:
        self.recorder.store(Resumed(by))
        self.execution.start()

    def _retry(self, status: Status, by: str) -> None:
        if status.state in ("validating", "awaiting-confirmation"):
            self.execution.stop()
            self.recorder.store(Entered("validating"))  # checked again: the earlier results no longer count
            self.recorder.store(StepStarted(str(VALIDATE)))
        self._resume(by)

    def _abandon(self, state: Literal["cancelled", "discarded"], by: str) -> None:
        """End the rollout and delete everything built for it alone; the live release is not touched."""
        self.execution.stop()
        release = self.recorder.status.release
        self.recorder.store(Ended(state, by))
        self.feeds.refollow()
        housekeeping.drop_preview(self.warehouse, self.releases, release, self.feeds.follower.finish_tick, self.spared)


def _fits(verb: Verb, status: Status) -> bool:
    """Whether the rollout's state permits the verb."""
    match verb:
        case "pause":
            return in_progress(status) and not status.held
        case "resume":
            return status.held == "paused"
        case "retry":
            return status.held == "failed" or (status.state == "awaiting-confirmation" and not status.held)
        case "cancel" | "discard":
            return in_progress(status)
        case _:
            assert_never(verb)


def verb_named(text: str) -> Verb:
    """raises DataError if a rollout cannot do it"""
    verb: Verb | None = next((verb for verb in get_args(Verb) if verb == text), None)
    if verb is None:
        raise DataError(f"{text!r:.60} is none of {', '.join(get_args(Verb))}")
    return verb
