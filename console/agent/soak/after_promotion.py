"""Runs the checks of each promoted release that its plan watches, round by round, and does what the plan says when one fails.

One thread for all pipelines of a region. A round begins with what memory and logs tell; checks that ask Spark follow, each
when it is due. What fails is stored and acted on before the next check. A decision of a person ends the round.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from console.agent.errors import AgentEnding
from console.agent.execution.validation import rebuilt_feeds
from console.agent.failure import cause
from console.agent.feeds import planted_bugs
from console.agent.feeds.live_feed import stalled_targets
from console.agent.pipeline import PipelineController
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.rollout.watched import is_watched
from console.agent.soak.gate_checks import GateRound, RoundMemory, goes_on, going_on, not_going_on
from console.agent.soak.looking import aligned, context_of
from console.agent.soak.news import RoundNews
from console.agent.soak.round_loop import RoundLoop
from console.agent.soak.spark_checks import SparkCheck
from console.agent.soak.watch_checks import watch_checks
from console.model.breach import Breached, OnBreach, WatchEnded, WatchNews, WatchProgress, news_text
from console.model.event import Checked, Logged
from console.model.gate import check_name
from console.model.identity import AgentReason, by_agent
from console.model.logline import Level
from console.model.soak import UNABLE_ROUNDS
from console.model.step import CreateTable
from console.text import redacted, safe_text

ROUND_SECONDS = 15.0  # between two rounds
SHARE = 5.0  # … and not before so many times what the last look at the logs took
ALIGN_SECONDS = 30.0  # for the feeds to reach one landing position
LOCK_SECONDS = 2.0  # for an operation on the pipeline
RETURN_SECONDS, MOST_RETURN_SECONDS = 5.0, 300.0  # between two attempts to take a release back


@dataclass(slots=True, kw_only=True)
class Watching:
    """What is known of one watched rollout. since: when it was promoted; due, again: monotonic"""

    rollout: str
    since: float
    due: float = 0.0
    news: RoundNews = field(default_factory=RoundNews)
    memory: RoundMemory = field(default_factory=RoundMemory)
    slow: tuple[SparkCheck, ...] = field(default_factory=watch_checks)
    progress: WatchProgress = field(default_factory=WatchProgress)
    unable: int = 0
    again: float = 0.0
    pause: float = RETURN_SECONDS
    wrong: set[str] = field(default_factory=set)  # failed or inconclusive in this round


@dataclass(slots=True, kw_only=True)
class WatchRounds(RoundLoop[Watching]):
    """One for all pipelines of a region. report: called with (pipeline, level, text)"""

    name = "watch"
    trouble = "the checks after its promotion failed"

    def _pause(self, looked: float) -> float:
        return max(ROUND_SECONDS, SHARE * looked)

    def _known_now(self, controller: PipelineController) -> bool:
        """Whether its rollout is watched."""
        recorder = controller.recorder
        status, plan = recorder.status, recorder.plan
        if plan is None or not is_watched(status, plan):
            self._known.pop(controller.pipeline, None)
            recorder.watched(None)
            return False
        known = self._known.get(controller.pipeline)
        if known is None or known.rollout != status.rollout:
            known = Watching(rollout=status.rollout, since=recorder.promoted_at())
            self._known[controller.pipeline] = known
        left = float(int(max(0.0, known.since + plan.gate.watch - time.time())))
        recorder.watched(replace(known.progress, left=left))
        return True

    def round(self, controller: PipelineController, known: Watching) -> float:
        """Check once, and act on what fails.

        returns  seconds that it looked at logs
        """
        context = _context(controller)
        began, why, looked = time.time(), "", 0.0
        known.wrong = set()
        with self._halted(controller, known, context):
            try:
                self._store(controller, known, list(_feeds_go_on(context)))
                pins = aligned(context, ALIGN_SECONDS)
                look = time.monotonic()
                made = GateRound(context, pins, known.memory)
                if self._store(controller, known, [*made.rows(), *(made.tables() if context.before else ())]):
                    known.memory = made.next()
                looked = time.monotonic() - look
                for kind in known.slow:
                    if not _stands(controller, known):
                        return looked
                    with closing(kind.results(context, pins)) as results:
                        for check in results:  # acted on one by one: the next may take a minute
                            if not self._store(controller, known, [check]) or not _stands(controller, known):
                                break  # what is not stored is looked at again
            except AgentEnding:
                return 0.0
            except RolloutStopped:
                return 0.0  # somebody decided, or the agent ends
            except Exception as error:
                if context.spark.lost or self._ending.is_set() or not _stands(controller, known):
                    return 0.0
                why = cause(error)
        self._completed(controller, known, began, why)
        return looked

    def _completed(self, controller: PipelineController, known: Watching, began: float, why: str) -> None:
        """Count the round, and end the watch with it if its time was over when it began."""
        known.unable = known.unable + 1 if why else 0
        table = next((step.table for step in _steps(controller) if isinstance(step, CreateTable)), "watch")
        if not why:
            self._store(controller, known, [going_on(table)])
        elif known.unable >= UNABLE_ROUNDS:
            self._store(controller, known, [not_going_on(table, UNABLE_ROUNDS, why)])
        before = known.progress
        known.progress = WatchProgress(
            at=before.at if why else time.time(),
            rounds=before.rounds + (not why),
            clean=0 if why or known.wrong else before.clean + 1,
            unable=safe_text(redacted(why), 300),
        )
        plan = controller.recorder.plan
        if plan is not None and began >= known.since + plan.gate.watch:
            status = controller.recorder.status
            unclear = tuple(sorted(check_name(check) for check in status.checks if check.ok is None))
            self._news(controller, known, WatchEnded(rounds=known.progress.rounds, unclear=unclear[:10]))

    def _store(self, controller: PipelineController, known: Watching, results: list[Checked]) -> bool:
        """Store what is new, and act on what has failed; False if somebody decides about the pipeline meanwhile."""
        results = [planted_bugs.blind(check) for check in results]
        known.wrong |= {check_name(check) for check in results if check.ok is not True}
        if not controller.lock.acquire(timeout=LOCK_SECONDS):
            return False
        try:
            recorder = controller.recorder
            if not _stands(controller, known):
                return False
            for check in known.news.of(recorder.status.checks, results):
                recorder.store(check)
            action: OnBreach = recorder.plan.gate.on_breach if recorder.plan else "pause"
            for check in recorder.status.checks:
                if check.ok is False and not recorder.status.watched.knows(check.table, check.check):
                    self._news(controller, known, _breached(check, action))
        finally:
            controller.lock.release()
        self._take_back(controller, known)
        return True

    def _news(self, controller: PipelineController, known: Watching, news: WatchNews) -> None:
        with controller.lock:
            if _stands(controller, known):
                level: Level = "error" if isinstance(news, Breached) else "info"
                controller.recorder.store(Logged(redacted(news_text(news)), level, news))

    def _take_back(self, controller: PipelineController, known: Watching) -> None:
        """Make the previous release live again if a breach says so and no person has decided. An attempt that fails is
        repeated later and later, for as long as the release is watched.
        """
        if time.monotonic() < known.again or not _to_take_back(controller, known):
            return
        if not controller.lock.acquire(timeout=LOCK_SECONDS):
            return
        try:
            if _to_take_back(controller, known):  # and not since a person had the lock
                by = by_agent(AgentReason.BREACH)
                controller.rollback(controller.recorder.status.release, by, socket.gethostname())
        except Exception as error:
            known.again, known.pause = time.monotonic() + known.pause, min(2 * known.pause, MOST_RETURN_SECONDS)
            controller.recorder.log(f"not taken back, as its policy says it should be: {cause(error)}", "error")
        finally:
            controller.lock.release()

    @contextmanager
    def _halted(self, controller: PipelineController, known: Watching, context: RolloutContext) -> Iterator[None]:
        """Context of a round that ends, with its Spark job, once its release is no longer watched or the agent ends."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(1.0):
                if not _stands(controller, known) or self._ending.is_set():
                    context.halt.set()
                    if (job := context.job) is not None:
                        job.cancel()

        watching = threading.Thread(target=watch, name="watch of a round", daemon=True)
        watching.start()
        try:
            yield
        finally:
            over.set()


def _feeds_go_on(context: RolloutContext) -> Iterator[Checked]:
    """Whether each feed of a rebuilt table goes on. One whose counterpart before has stopped as well says nothing against
    the new release: the way back would not help.
    """
    stalled = stalled_targets(context.follower.feeds(context.plan.pipeline))
    for feed in rebuilt_feeds(context):
        check, state = goes_on(feed), context.before.table(feed.spec.target) if context.before else None
        if check.ok is False and state is not None and context.path(state.version.path) in stalled:
            check = replace(check, ok=None, detail=f"{check.detail}; so has the version before")
        yield check


def _breached(check: Checked, action: OnBreach) -> Breached:
    detail = safe_text(redacted(check.detail), 500)
    return Breached(table=check.table, check=check.check, detail=detail, action=action)


def _to_take_back(controller: PipelineController, known: Watching) -> bool:
    """Whether the agent is to take the release back now."""
    if not _stands(controller, known) or controller.recorder.status.watched.held_by:
        return False
    return any(breach.action == "rollback" for breach in controller.recorder.status.watched.open)


def _stands(controller: PipelineController, known: Watching) -> bool:
    """Whether its rollout is still live and watched."""
    status = controller.recorder.status
    return status.rollout == known.rollout and is_watched(status, controller.recorder.plan)


def _steps(controller: PipelineController) -> tuple[object, ...]:
    return tuple(controller.recorder.plan.steps) if controller.recorder.plan else ()


def _context(controller: PipelineController) -> RolloutContext:
    """The new release beside the one before it, unless that is no longer fed."""
    context, previous = context_of(controller), controller.releases.in_state("previous")
    plan = controller.recorder.plan
    if previous is not None and plan is not None and previous.row.id == plan.live:
        context.before = previous.release
    return context
