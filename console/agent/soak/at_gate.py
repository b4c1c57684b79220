"""Runs the checks of each rollout that waits at its gate, round by round, in one thread for all pipelines of a region.

A round reads Delta logs first, then asks Spark what is due. It holds no lock; a decision about the rollout ends it within
seconds. Each part takes at most one part in `SHARE` of the time.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from console.agent.errors import AgentEnding
from console.agent.failure import cause
from console.agent.feeds import planted_bugs
from console.agent.pipeline import PipelineController
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.soak.gate_checks import GateRound, RoundMemory, going_on, not_going_on
from console.agent.soak.looking import aligned, context_of
from console.agent.soak.news import RoundNews
from console.agent.soak.round_loop import RoundLoop
from console.agent.soak.spark_checks import SparkCheck
from console.agent.soak.watch_checks import gate_checks
from console.model.event import Checked
from console.model.gate import OPEN, gate_of
from console.model.soak import CHECK_SECONDS, UNABLE_ROUNDS, SoakProgress
from console.model.status import Status
from console.model.step import CreateTable
from console.text import redacted, safe_text

SHARE = 20.0  # a round begins after so many times what the last one took
ROUND_SECONDS = 900.0  # after which a round is cancelled
LOCK_SECONDS = 2.0  # for an operation on the pipeline


@dataclass(slots=True, kw_only=True)
class Soaking:
    """What is known of one rollout at its gate. due: monotonic; seq: of the status at which `since` was read"""

    rollout: str
    since: float
    seq: int
    due: float
    news: RoundNews = field(default_factory=RoundNews)
    memory: RoundMemory = field(default_factory=RoundMemory)
    slow: tuple[SparkCheck, ...] = field(default_factory=gate_checks)
    progress: SoakProgress = field(default_factory=SoakProgress)
    unable: int = 0


@dataclass(slots=True, kw_only=True)
class GateRounds(RoundLoop[Soaking]):
    """One for all pipelines of a region. report: called with (pipeline, level, text)"""

    name = "gate"
    trouble = "the checks at its gate do not go on"

    def _pause(self, looked: float) -> float:
        return max(CHECK_SECONDS, SHARE * looked)

    def _known_now(self, controller: PipelineController) -> bool:
        """Whether its rollout is at its gate, as far as it may be checked."""
        recorder = controller.recorder
        status = recorder.status
        if not _at_gate(status):
            if status.state != "promoting":  # if that fails, the rounds go on where they were
                self._known.pop(controller.pipeline, None)
            recorder.soaked(None)
            return False
        known = self._known.get(controller.pipeline)
        if known is None or known.rollout != status.rollout or known.seq > status.seq:
            since = recorder.gate_since()
            due = time.monotonic() + CHECK_SECONDS
            known = Soaking(rollout=status.rollout, since=since, seq=status.seq, due=due)
            self._known[controller.pipeline] = known
        elif known.seq != status.seq:
            since, known.seq = recorder.gate_since(), status.seq
            if since != known.since:  # validated again meanwhile
                self._known.pop(controller.pipeline)
                return self._known_now(controller)
        recorder.soaked(_now(known))
        return True

    def round(self, controller: PipelineController, known: Soaking) -> float:
        """Check once, and store what is new.

        returns  seconds that it looked at logs; to wait for the feeds takes nothing from others
        """
        context = context_of(controller)
        why, results, began = "", list[Checked](), time.monotonic()
        memory, pins = known.memory, dict[str, int]()
        with self._halted(controller, known, context):
            try:
                pins = aligned(context)
                began = time.monotonic()
                made = GateRound(context, pins, known.memory)
                results = [planted_bugs.blind(check) for check in made.results()]
                memory = made.next()
            except AgentEnding:
                return 0.0
            except RolloutStopped:
                if self._ending.is_set() or not _stands(controller, known):
                    return 0.0
                why = f"a round took more than {ROUND_SECONDS:.0f} s"
            except Exception as error:
                if context.spark.lost or self._ending.is_set() or not _stands(controller, known):
                    return 0.0  # the agent restarts, or its tables are being dropped
                why = cause(error)
        looked = time.monotonic() - began
        known.unable = known.unable + 1 if why else 0
        table = next((step.table for step in context.plan.steps if isinstance(step, CreateTable)), "")
        if why:
            results = [not_going_on(table, UNABLE_ROUNDS, why)] if known.unable >= UNABLE_ROUNDS else []
        else:
            results.append(going_on(table))
        if not self._store(controller, known, results):
            return 0.0 if why else looked
        known.memory = memory
        if why:
            known.progress = replace(known.progress, clean=0, unable=safe_text(redacted(why), 300))
            return 0.0
        self._ask_spark(controller, known, pins)
        checks = (each for each in gate_of(controller.recorder.status).conditions if each.kind == "check")
        clean = known.progress.clean + 1 if all(each.state in OPEN for each in checks) else 0
        known.progress = SoakProgress(at=time.time(), rounds=known.progress.rounds + 1, clean=clean)
        return looked

    def _store(self, controller: PipelineController, known: Soaking, results: Iterable[Checked]) -> bool:
        """Store the news; False if the rollout was decided about meanwhile."""
        recorder = controller.recorder
        if not controller.lock.acquire(timeout=LOCK_SECONDS):
            return False
        try:
            if not _stands(controller, known):
                return False
            for check in known.news.of(recorder.status.checks, results):
                recorder.store(check)
        finally:
            controller.lock.release()
        return True

    def _ask_spark(self, controller: PipelineController, known: Soaking, pins: Mapping[str, int]) -> None:
        """The checks that ask Spark, as far as they are due. What is not completed in time says nothing: the validation has
        run them without a limit.
        """
        context = context_of(controller)
        with self._halted(controller, known, context):
            try:
                for kind in known.slow:
                    with closing(kind.results(context, pins)) as results:
                        for check in results:
                            if not self._store(controller, known, [planted_bugs.blind(check)]):
                                break  # what is not stored is looked at again
            except (AgentEnding, RolloutStopped):
                return
            except Exception:
                if not context.spark.lost:  # else the agent restarts
                    raise

    @contextmanager
    def _halted(self, controller: PipelineController, known: Soaking, context: RolloutContext) -> Iterator[None]:
        """Context of a round that ends once its rollout is no longer at its gate, the agent ends, or its time is over."""
        over, end = threading.Event(), time.monotonic() + ROUND_SECONDS

        def watch() -> None:
            while not over.wait(1.0):
                if not _stands(controller, known) or self._ending.is_set() or time.monotonic() > end:
                    context.halt.set()
                    if (job := context.job) is not None:
                        job.cancel()

        watching = threading.Thread(target=watch, name="gate watch", daemon=True)
        watching.start()
        try:
            yield
        finally:
            over.set()


def _at_gate(status: Status) -> bool:
    return status.shown == "awaiting-confirmation"


def _stands(controller: PipelineController, known: Soaking) -> bool:
    """Whether its rollout is still at the gate where the round began: a retry comes back to another one."""
    recorder = controller.recorder
    status = recorder.status
    return _at_gate(status) and status.rollout == known.rollout and recorder.gate_since() == known.since


def _now(known: Soaking) -> SoakProgress:
    return replace(known.progress, waited=float(max(0, int(time.time() - known.since))))
