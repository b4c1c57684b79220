"""The agent's RPC methods by name: one controller per pipeline, one follower and one Spark for all."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from console import __version__
from console.agent import queries
from console.agent.agent_log import describe, write_log
from console.agent.execution.control import verb_named
from console.agent.feeds.follower import FeedFollower
from console.agent.ingest.acceptance_day import accept_until
from console.agent.ingest.landing import LandingWriter
from console.agent.maintenance import maintainer
from console.agent.maintenance.erased_rows import ErasedRowsSearch
from console.agent.pipeline import PipelineController
from console.agent.receipts import audit
from console.agent.receipts.listener import AuditListener
from console.agent.rollout import notes, ownership
from console.agent.rollout.declared import declare
from console.agent.sampler import Sampler
from console.agent.soak.all_rounds import CheckRounds
from console.agent.spark_session import Settings, SparkHandle
from console.agent.store.samples import SampleRing
from console.agent.survey import survey
from console.agent.way_back.prover import WayBackProver
from console.errors import DataError
from console.model import codec
from console.model.compared import DayExamples
from console.model.consent import Declaration
from console.model.event import Lagging
from console.model.fleet import FleetWaves
from console.model.live import Live, Release
from console.model.load import EventRun, LoadState
from console.model.measured import FeedSample, SamplePage
from console.model.plan import Plan
from console.model.sandbox import Sandbox, SandboxOrder
from console.model.tuning import Tuning
from console.text import redacted

PROTOCOL = 1
RETRY_SECONDS = 10.0  # between two attempts to load a pipeline
TOLD_SECONDS = 60.0  # between two reports of one failure


class Service:
    """The region's agent behind its socket. docs/architecture.md describes parameters and results of the methods."""

    def __init__(self, warehouse: Path, settings: Settings, lock_fd: int) -> None:
        self.warehouse, self.settings = warehouse, settings
        self.spark = SparkHandle(settings, lock_fd)
        self.follower = FeedFollower(self.spark, settings.tick_seconds, self.report)
        self.ring = SampleRing(warehouse)
        self._last_seen = self.ring.last_at  # the agent before this one
        self.sampler = Sampler(ring=self.ring, follower=self.follower)
        self._controllers: dict[str, PipelineController] = {}
        self.maintainer = maintainer.Maintainer(
            self.spark, self._all, self.report, lambda: tuple(self._failed_pipelines)
        )
        self.prover = WayBackProver(
            controllers=self._all, keep_hours=settings.rollback_window_hours, report=self.report
        )
        self.erased = ErasedRowsSearch(
            controllers=self._all, keep_hours=settings.rollback_window_hours, report=self.report
        )
        self.rounds = CheckRounds(controllers=self._all, report=self.report)
        self._guard = threading.Lock()
        self._failed_pipelines: dict[str, str] = {}  # pipelines that failed to load → why
        self._tried = 0.0  # monotonic: last retry of the failed pipelines
        self._told: dict[tuple[str, str], float] = {}  # pipeline, its tick's failure → monotonic: when to report again
        self._methods = self._by_name()

    def _by_name(self) -> dict[str, Callable[..., Any]]:
        return {
            "hello": self.hello,
            "survey": self.survey,
            "state": self.state,
            "accept": self.accept,
            "watch": self.watch,
            "control": self.control,
            "tune": self.tune,
            "note": self.note,
            "declare": self.declare,
            "accept_until": self.accept_until,
            "preview": self.preview,
            "preview_release": self.preview_release,
            "drop_preview": self.drop_preview,
            "promote": self.promote,
            "rollback": self.rollback,
            "take_over": self.take_over,
            "maintain": self.maintain,
            "cleanup": self.cleanup,
            "restore": self.restore,
            "query": self.query,
            "examples": self.examples,
            "verify": self.verify,
            "run": self.run,
            "ingest": self.ingest,
            "landed": self.landed,
            "check": self.check,
            "marks": self.marks,
            "samples": self.samples,
            "shutdown": self.shutdown,
        }

    def start(self) -> None:
        """Load every pipeline of the region, continue its rollout, and start the follower."""
        marker = self.warehouse / "_console" / "marker.json"
        if not marker.exists():
            # readable by the agent's user alone, whatever the umask
            marker.touch(mode=0o600)
            marker.write_text(json.dumps({"format_version": 1, "region": self.settings.region}))
        for rollouts in sorted((self.warehouse / "_console").glob("*/rollouts")):
            self._load(rollouts.parent.name)
        self.follower.start()

    def _load(self, pipeline: str) -> None:
        """Load one pipeline and continue its rollout. A failure does not affect the others; it is retried (`tick`)."""
        try:
            self.controller(pipeline).resume()
        except Exception as error:
            reason = describe(error)
            if self._failed_pipelines.get(pipeline) != reason:
                write_log(pipeline, "error", f"failed to load; retrying: {reason}")
            self._failed_pipelines[pipeline] = reason
        else:
            if self._failed_pipelines.pop(pipeline, None):
                write_log(pipeline, "info", "loaded")

    def _all(self) -> tuple[PipelineController, ...]:
        return tuple(self._controllers.values())

    def expect_driver_exit(self) -> None:
        """The agent is ending: from now on a JVM that exits does not count as lost, since it may have received the same
        signal."""
        self.spark.ending = True

    def stop(self) -> None:
        """Stop the follower, every executor and Spark; rollouts keep their state for the next agent."""
        self.follower.stop()
        self.rounds.stop()
        for controller in self._controllers.values():
            controller.halt()
        if self.follower.is_alive():
            self.follower.join(20)
        self.spark.stop()

    def method(self, name: str) -> Callable[..., Any]:
        """raises DataError if the agent has no such method"""
        if name not in self._methods:
            raise DataError(f"no method {name!r:.60}")
        return self._methods[name]

    def controller(self, pipeline: str) -> PipelineController:
        """The controller of a pipeline, created at its first use.

        raises  DataError if the name is not a pipeline's name; RegionError if its tables cannot be read
        """
        if not pipeline or not all(char.isalnum() or char in "-_" for char in pipeline):
            raise DataError(f"{pipeline!r:.60} is no pipeline's name")
        with self._guard:
            if pipeline not in self._controllers:
                self._controllers[pipeline] = PipelineController(
                    self.warehouse, pipeline, self.spark, self.follower, self.settings, self._last_seen
                )
            return self._controllers[pipeline]

    def report(self, pipeline: str, level: str, text: str) -> None:
        """Write to the log and to the pipeline's watchers. Never raises: logging must not stop a feed.

        level  info, warning or error
        """
        text = redacted(text)
        write_log(pipeline, level, text)
        with suppress(Exception):
            self.controller(pipeline).recorder.log(text, level)

    # -- methods

    def hello(self, protocol: int) -> dict[str, Any]:
        if protocol != PROTOCOL:
            raise DataError(
                f"this agent ({__version__}) speaks protocol {PROTOCOL}, not {protocol}",
                hint="use the same version of console on both sides",
                code="E_PROTOCOL",
            )
        return {
            "protocol": PROTOCOL,
            "tool": __version__,
            "pid": os.getpid(),
            "region": self.settings.region,
            "warehouse": str(self.warehouse),
            "later": True,
        }

    def survey(self, pipeline: str, landing: list[str]) -> Live:
        return survey(self.warehouse, self.settings.region, pipeline, landing)

    def state(self, pipeline: str) -> dict[str, Any]:
        controller = self.controller(pipeline)
        controller.recorder.publish(self._lagging(pipeline, controller))
        return {
            "status": controller.recorder.status,
            "plan": controller.recorder.plan,
            "releases": [stored.row for stored in controller.releases.all()],
        }

    def accept(
        self, plan: Any, by: str, host: str, attached: bool = False, console: str = "", fleet: Any = None
    ) -> dict[str, str]:
        decoded = codec.decode(Plan, plan)
        waves = None if fleet is None else codec.decode(FleetWaves, fleet)
        if decoded.refusals:
            raise DataError(f"the plan is refused: {decoded.refusals[0]}", hint=decoded.refusals[0].hint)
        with ownership.owned(self.controller(decoded.pipeline), console) as controller:
            return {"rollout": controller.accept(decoded, by, host, attached, waves)}

    def watch(self, pipeline: str, after: int = 0, by: str = "", host: str = "", console: str = "") -> dict[str, Any]:
        self.controller(pipeline)
        return {}

    def _lagging(self, pipeline: str, controller: PipelineController) -> Lagging:
        watchers, sandboxes = controller.recorder.named_watchers, controller.sandboxes.listed()
        status = controller.recorder.status
        return replace(
            self.follower.lag(pipeline),
            watchers=watchers,
            sandboxes=sandboxes,
            way_back=self.prover.proof(pipeline),
            on_hold=controller.cleaning.held(),
            erased=self.erased.found(pipeline),
            soak=status.soak,
            watch=status.watch,
        )

    def control(self, pipeline: str, verb: str, by: str, host: str, console: str = "") -> Any:
        with ownership.owned(self.controller(pipeline), console) as controller:
            return controller.control(verb_named(verb), f"{by} from {host}")

    def tune(self, pipeline: str, tuning: Any, by: str, host: str, reset: bool = False, console: str = "") -> Any:
        with ownership.owned(self.controller(pipeline), console) as controller:
            return controller.tune(codec.decode(Tuning, tuning), by, host, reset=reset)

    def note(self, pipeline: str, text: str, by: str, host: str) -> Any:
        return notes.leave_note(self.controller(pipeline), text, by, host)

    def declare(self, pipeline: str, rollout: str, declared: Any) -> Any:
        (declaration,) = codec.decode(tuple[Declaration, ...], [declared])
        return declare(self.controller(pipeline), rollout, declaration)

    def accept_until(self, pipeline: str, release: str, days: dict[str, str], by: str, host: str) -> dict[str, Any]:
        return {"days": accept_until(self.controller(pipeline), release, days, by, host)}

    def preview(self, plan: Any, name: str, days: int, hours: float, by: str, host: str) -> Sandbox:
        decoded, now = codec.decode(Plan, plan), time.time()
        if decoded.refusals:
            raise DataError(f"the plan is refused: {decoded.refusals[0]}", hint=decoded.refusals[0].hint)
        order = SandboxOrder(name=name, days=max(1, days), at=now, expires=now + hours * 3600, by=by, host=host)
        return self.controller(decoded.pipeline).preview(decoded, order)

    def preview_release(self, pipeline: str, name: str) -> Release:
        return self.controller(pipeline).sandboxes.release(name)

    def drop_preview(self, pipeline: str, name: str, by: str, host: str) -> dict[str, Any]:
        dropped = self.controller(pipeline).drop_preview(name)
        write_log(pipeline, "info", f"preview {name} dropped by {by} from {host}")
        return {"dropped": list(dropped)}

    def take_over(self, pipeline: str, by: str, host: str, console: str) -> Any:
        return ownership.take_over(self.controller(pipeline), console, by, host)

    def promote(self, pipeline: str, rollout: str, live: str, by: str, host: str, console: str = "") -> Any:
        with ownership.owned(self.controller(pipeline), console) as controller:
            return controller.promote(rollout, live, by, host)

    def rollback(self, pipeline: str, live: str, by: str, host: str) -> Any:
        return self.controller(pipeline).rollback(live, by, host)

    def cleanup(
        self,
        pipeline: str,
        by: str,
        host: str,
        *,
        dry_run: bool = False,
        previous: bool = False,
        let_go: Sequence[str] = (),
        hold: float = 0.0,
    ) -> dict[str, Any]:
        controller, who = self.controller(pipeline), f"{by} from {host}"
        if hold:
            return {"dropped": [*controller.hold(who, hold, dry_run=dry_run, let_go=let_go)]}
        return {"dropped": [*controller.cleanup(who, dry_run=dry_run, previous=previous, let_go=let_go)]}

    def restore(self, pipeline: str, by: str, host: str) -> dict[str, str]:
        return {"release": self.controller(pipeline).restore()}

    def maintain(self, pipeline: str, by: str, host: str, accept: str = "", **request: Any) -> dict[str, Any]:
        controller = self.controller(pipeline)
        if accept:
            maintainer.accept(controller, self.follower, accept, f"{by} from {host}")
            return {"done": [maintainer.MaintenanceResult(accept, "accepted", "its feeds continue")]}
        return {"done": list(self.maintainer.run(controller, maintainer.MaintenanceRequest(**request)))}

    def query(
        self, pipeline: str, sql: str, tables: list[str], args: dict[str, Any], limit: int, release: str = ""
    ) -> dict[str, Any]:
        reading = queries.PipelineReader(self.controller(pipeline), release)
        return queries.query(reading, self.spark, sql, tables=tables, args=args, limit=limit)

    def examples(self, pipeline: str, table: str, day: str) -> DayExamples:
        return queries.examples(self.controller(pipeline), self.spark, table, day)

    def verify(self, pipeline: str, rollout: str) -> Any:
        return self.audit(AuditListener(), pipeline, rollout)

    def audit(self, listener: AuditListener, pipeline: str, rollout: str) -> Any:
        """`verify` with progress, for a console that cancels it by closing its connection."""
        return audit.verify(self.warehouse, self.controller(pipeline).pipeline, rollout, self.spark, listener)

    def run(
        self, pipeline: str, kind: str, name: str, by: str, host: str, *, run: str = "", release: str = ""
    ) -> dict[str, Any]:
        match kind:
            case "copy":
                run = run or uuid4().hex  # an older console names no run, and cannot repeat it
                reading = queries.PipelineReader(self.controller(pipeline), release)
                return queries.run_copy(reading, self.spark, name, run, f"{by} from {host}")
            case "sink":
                return queries.run_sink(self.controller(pipeline), self.spark, name)
        raise DataError(f"{kind!r:.60} is neither copy nor sink")

    def ingest(
        self, pipeline: str, table: str, batch: str, lines: list[str], run: Any = None, shape: str = ""
    ) -> dict[str, Any]:
        events = None if run is None else codec.decode(EventRun, run)
        return LandingWriter(self.controller(pipeline)).append(table, batch, lines, events, shape)

    def check(self, pipeline: str, table: str, lines: list[str], at: Any, shape: str = "") -> dict[str, str]:
        pieces = codec.decode(tuple[tuple[int, int], ...], at)
        return LandingWriter(self.controller(pipeline)).check(table, lines, pieces, shape)

    def landed(self, pipeline: str, table: str, load: str, first: str, **more: Any) -> LoadState:
        return LandingWriter(self.controller(pipeline)).load_state(table, load, first, **more)

    def marks(self, pipeline: str, table: str, load: str, rows: int) -> dict[str, str]:
        return LandingWriter(self.controller(pipeline)).marks(table, load, rows)

    def samples(self, pipeline: str, hours: float, feed: str | None = "", before: int = 0) -> SamplePage:
        self.controller(pipeline)
        return self.ring.page(pipeline, time.time() - float(hours) * 3600, feed, int(before))

    def shutdown(self) -> dict[str, Any]:
        return {}

    def tick(self) -> None:
        """Once a second: send the lag to everyone who watches, and let controllers and maintenance do what is due."""
        controllers = dict(self._controllers)
        samples = self._sampled(controllers)
        for name, controller in controllers.items():
            try:
                controller.tick()
                if controller.recorder.watchers:
                    lagging = self._lagging(name, controller)
                    controller.recorder.publish(replace(lagging, samples=samples.get(name, ())))
            except Exception as error:  # a full disk, for example: retried in the next second, and told once a minute
                text, now = f"{type(error).__name__}: {str(error)[:200]}", time.monotonic()
                if now >= self._told.get((name, text), now):
                    self._told = {key: until for key, until in self._told.items() if until > now}
                    self._told[name, text] = now + TOLD_SECONDS
                    self.report(name, "warning", text)
        self._retry_failed()
        self.maintainer.tick()
        self.prover.tick()
        self.erased.tick()
        self.rounds.tick()

    def _sampled(self, controllers: Mapping[str, PipelineController]) -> dict[str, tuple[FeedSample, ...]]:
        failed = self.sampler.failed
        try:
            samples = self.sampler.tick({name: controller.recorder.status for name, controller in controllers.items()})
        except Exception as error:  # figures are the least important duty of an agent
            write_log("agent", "warning", f"no samples: {describe(error)}")
            return {}
        if self.sampler.failed not in ("", failed):
            write_log("agent", "warning", self.sampler.failed)
        return samples

    def _retry_failed(self) -> None:
        if self._failed_pipelines and time.monotonic() - self._tried > RETRY_SECONDS:
            self._tried = time.monotonic()
            for pipeline in tuple(self._failed_pipelines):
                self._load(pipeline)

    def driver_lost(self) -> bool:
        """Whether Spark was started and its JVM has exited."""
        return self.spark.lost
