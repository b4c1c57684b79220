"""The agent's RPC methods by name."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from console import __version__
from console.agent import queries
from console.agent.agent_log import write_log
from console.agent.execution.control import verb_named
from console.agent.ingest.acceptance_day import accept_until
from console.agent.ingest.landing import LandingWriter
from console.agent.maintenance import maintainer
from console.agent.receipts import audit
from console.agent.receipts.listener import AuditListener
from console.agent.region_agent import RegionAgent
from console.agent.rollout import notes, ownership
from console.agent.rollout.declared import declare
from console.agent.settings import Settings
from console.agent.survey import survey
from console.errors import DataError
from console.model import codec
from console.model.compared import DayExamples
from console.model.consent import Declaration
from console.model.fleet import FleetWaves
from console.model.live import Live, Release
from console.model.load import EventRun, LoadState
from console.model.measured import SamplePage
from console.model.plan import Plan
from console.model.sandbox import Sandbox, SandboxOrder
from console.model.tuning import Tuning

PROTOCOL = 1


class Service:
    """The region's agent behind its socket. docs/architecture.md describes parameters and results of the methods."""

    def __init__(self, warehouse: Path, settings: Settings, lock_fd: int) -> None:
        self.agent = RegionAgent(warehouse, settings, lock_fd)
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

    def method(self, name: str) -> Callable[..., Any]:
        """raises DataError if the agent has no such method"""
        if name not in self._methods:
            raise DataError(f"no method {name!r:.60}")
        return self._methods[name]

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
            "region": self.agent.settings.region,
            "warehouse": str(self.agent.warehouse),
            "later": True,
            "parts": True,
        }

    def survey(self, pipeline: str, landing: list[str]) -> Live:
        return survey(self.agent.warehouse, self.agent.settings.region, pipeline, landing)

    def state(self, pipeline: str) -> dict[str, Any]:
        controller = self.agent.controller(pipeline)
        controller.recorder.publish(self.agent.lagging(pipeline, controller))
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
        with ownership.owned(self.agent.controller(decoded.pipeline), console) as controller:
            return {"rollout": controller.accept(decoded, by, host, attached, waves)}

    def watch(self, pipeline: str, after: int = 0, by: str = "", host: str = "", console: str = "") -> dict[str, Any]:
        self.agent.controller(pipeline)
        return {}

    def control(self, pipeline: str, verb: str, by: str, host: str, console: str = "") -> Any:
        wanted = verb_named(verb)
        with ownership.owned(self.agent.controller(pipeline), console) as controller:
            return controller.control(wanted, f"{by} from {host}")

    def tune(self, pipeline: str, tuning: Any, by: str, host: str, reset: bool = False, console: str = "") -> Any:
        with ownership.owned(self.agent.controller(pipeline), console) as controller:
            return controller.tune(codec.decode(Tuning, tuning), by, host, reset=reset)

    def note(self, pipeline: str, text: str, by: str, host: str) -> Any:
        return notes.leave_note(self.agent.controller(pipeline), text, by, host)

    def declare(self, pipeline: str, rollout: str, declared: Any) -> Any:
        (declaration,) = codec.decode(tuple[Declaration, ...], [declared])
        return declare(self.agent.controller(pipeline), rollout, declaration)

    def accept_until(self, pipeline: str, release: str, days: dict[str, str], by: str, host: str) -> dict[str, Any]:
        return {"days": accept_until(self.agent.controller(pipeline), release, days, by, host)}

    def preview(
        self, plan: Any, name: str, days: int, hours: float, by: str, host: str, *, live: bool = False
    ) -> Sandbox:
        decoded, now = codec.decode(Plan, plan), time.time()
        if decoded.refusals:
            raise DataError(f"the plan is refused: {decoded.refusals[0]}", hint=decoded.refusals[0].hint)
        order = SandboxOrder(
            name=name, days=max(1, days), at=now, expires=now + hours * 3600, by=by, host=host, follows=live
        )
        return self.agent.controller(decoded.pipeline).preview(decoded, order)

    def preview_release(self, pipeline: str, name: str) -> Release:
        return self.agent.controller(pipeline).sandboxes.release(name)

    def drop_preview(self, pipeline: str, name: str, by: str, host: str) -> dict[str, Any]:
        dropped = self.agent.controller(pipeline).drop_preview(name)
        write_log(pipeline, "info", f"preview {name} dropped by {by} from {host}")
        return {"dropped": list(dropped)}

    def take_over(self, pipeline: str, by: str, host: str, console: str) -> Any:
        return ownership.take_over(self.agent.controller(pipeline), console, by, host)

    def promote(self, pipeline: str, rollout: str, live: str, by: str, host: str, console: str = "") -> Any:
        with self.agent.spark.in_use(), ownership.owned(self.agent.controller(pipeline), console) as controller:
            return controller.promote(rollout, live, by, host)

    def rollback(self, pipeline: str, live: str, by: str, host: str) -> Any:
        with self.agent.spark.in_use():
            return self.agent.controller(pipeline).rollback(live, by, host)

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
        controller, who = self.agent.controller(pipeline), f"{by} from {host}"
        if hold:
            return {"dropped": [*controller.hold(who, hold, dry_run=dry_run, let_go=let_go)]}
        return {"dropped": [*controller.cleanup(who, dry_run=dry_run, previous=previous, let_go=let_go)]}

    def restore(self, pipeline: str, by: str, host: str) -> dict[str, str]:
        return {"release": self.agent.controller(pipeline).restore()}

    def maintain(self, pipeline: str, by: str, host: str, accept: str = "", **request: Any) -> dict[str, Any]:
        controller = self.agent.controller(pipeline)
        if accept:
            maintainer.accept(controller, self.agent.follower, accept, f"{by} from {host}")
            return {"done": [maintainer.MaintenanceResult(accept, "accepted", "its feeds continue")]}
        with self.agent.spark.in_use():
            return {"done": list(self.agent.maintainer.run(controller, maintainer.MaintenanceRequest(**request)))}

    def query(
        self, pipeline: str, sql: str, tables: list[str], args: dict[str, Any], limit: int, release: str = ""
    ) -> dict[str, Any]:
        reading = queries.PipelineReader(self.agent.controller(pipeline), release)
        with self.agent.spark.in_use():
            return queries.query(reading, self.agent.spark, sql, tables=tables, args=args, limit=limit)

    def examples(self, pipeline: str, table: str, day: str) -> DayExamples:
        with self.agent.spark.in_use():
            return queries.examples(self.agent.controller(pipeline), self.agent.spark, table, day)

    def verify(self, pipeline: str, rollout: str) -> Any:
        return self.audit(AuditListener(), pipeline, rollout)

    def audit(self, listener: AuditListener, pipeline: str, rollout: str) -> Any:
        """`verify` with progress, for a console that cancels it by closing its connection."""
        with self.agent.spark.in_use():
            return audit.verify(
                self.agent.warehouse, self.agent.controller(pipeline).pipeline, rollout, self.agent.spark, listener
            )

    def run(
        self, pipeline: str, kind: str, name: str, by: str, host: str, *, run: str = "", release: str = ""
    ) -> dict[str, Any]:
        with self.agent.spark.in_use():
            match kind:
                case "copy":
                    run = run or uuid4().hex  # an older console names no run, and cannot repeat it
                    reading = queries.PipelineReader(self.agent.controller(pipeline), release)
                    return queries.run_copy(reading, self.agent.spark, name, run, f"{by} from {host}")
                case "sink":
                    return queries.run_sink(self.agent.controller(pipeline), self.agent.spark, name)
        raise DataError(f"{kind!r:.60} is neither copy nor sink")

    def ingest(
        self, pipeline: str, table: str, batch: str, lines: list[str], run: Any = None, shape: str = ""
    ) -> dict[str, Any]:
        events = None if run is None else codec.decode(EventRun, run)
        return LandingWriter(self.agent.controller(pipeline)).append(table, batch, lines, events, shape)

    def check(self, pipeline: str, table: str, lines: list[str], at: Any, shape: str = "") -> dict[str, str]:
        pieces = codec.decode(tuple[tuple[int, int], ...], at)
        return LandingWriter(self.agent.controller(pipeline)).check(table, lines, pieces, shape)

    def landed(self, pipeline: str, table: str, load: str, first: str, **more: Any) -> LoadState:
        return LandingWriter(self.agent.controller(pipeline)).load_state(table, load, first, **more)

    def marks(self, pipeline: str, table: str, load: str, rows: int) -> dict[str, str]:
        return LandingWriter(self.agent.controller(pipeline)).marks(table, load, rows)

    def samples(self, pipeline: str, hours: float, feed: str | None = "", before: int = 0) -> SamplePage:
        self.agent.controller(pipeline)
        return self.agent.ring.page(pipeline, time.time() - float(hours) * 3600, feed, int(before))

    def shutdown(self) -> dict[str, Any]:
        return {}
