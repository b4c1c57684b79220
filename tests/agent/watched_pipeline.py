"""Pipelines of one region on real Spark whose releases are watched after their promotion, each with tables of its own."""

import asyncio
import json
import math
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.feeds import live_feed
from console.agent.pipeline import PipelineController
from console.agent.rollout.declared import declare
from console.agent.settings import Settings
from console.agent.spark_process import BRIEF
from console.agent.store import log
from console.model.breach import Breach, OnBreach, WatchProgress
from console.model.consent import Approved, CheckAccepted
from console.model.gate import unaccepted, verdicts
from console.model.status import Status
from tests.agent import watched_rows
from tests.agent.test_resilience import COLUMNS, PARSE, TABLE, Region
from tests.life.region import LANDING, SHORT_LIVED

NEWEST = datetime(2026, 11, 4, 12, tzinfo=UTC)  # the day of the rows that arrive
CALLED = "2026-11-02"  # the day that is asked for
BYTES = "CAST(get_json_object(payload, '$.bytes') AS BIGINT) AS bytes"
STATUS = "get_json_object(payload, '$.status')"  # r2's, as is the next one
MS = "CAST(get_json_object(payload, '$.ms') AS DOUBLE) AS ms"
# of an address with many a and no b it tries every way to divide them
COSTLY = " AND ip NOT RLIKE 'a.*a.*a.*a.*b'"
MOST_FILES = 30  # of the day that is asked for
CALL = f"calls:\n  - {{parameters: {{day: {CALLED}}}, budget: {{files: {MOST_FILES}}}}}\n"
NEWEST_CALL = f"calls:\n  - {{parameters: {{day: {NEWEST:%Y-%m-%d}}}, budget: {{files: 200}}}}\n"
EXPECTED = """cluster_by: [id]
expectations:
  - status <> 'boom'
  - {not_null: [id]}
  - {not_null: [status]}
  - {range: {ms: {max: 1000000}}}
"""
QUERY = "SELECT count_if(ip = 'evil') = 0 AND coalesce(sum(bytes), 0) < 1000000000 FROM requests"
NAMES = re.compile(r"(?<!kind: )\b(landing|requests)\b")
SECONDS, GATE_SECONDS = 120.0, 600.0
ONE_BATCH = 100_000  # rows: how a release is built is not what is watched


class WatchedRegion(Region):
    """A region whose producers are several threads."""

    def __init__(self, root: Path, *, for_long: bool = False) -> None:
        """for_long: for many minutes, in which Java that is compiled well pays; its feeds move as often as a region's do"""
        if for_long:
            compiled = {name: value for name, value in SHORT_LIVED.items() if value != BRIEF}
            super().__init__(root, most=ONE_BATCH, conf=compiled, tick_seconds=Settings().tick_seconds)
        else:
            super().__init__(root)
        self._numbering = threading.Lock()

    def events(self, number: int) -> list[dict[str, Any]]:
        """The next landing rows."""
        with self._numbering:
            return [self._next() for _ in range(number)]


@dataclass(slots=True, kw_only=True)
class WatchedPipeline:
    """r1 is live; the next release adds two columns, expectations, and a condition to an endpoint.

    suffix  of the names of its two tables
    """

    region: WatchedRegion
    name: str
    suffix: str

    def named(self, text: str) -> str:
        """The text with this pipeline's tables."""
        return NAMES.sub(rf"\g<0>{self.suffix}", text)

    @property
    def controller(self) -> PipelineController:
        return self.region.service.agent.controller(self.name)

    @property
    def status(self) -> Status:
        return self.controller.recorder.status

    @property
    def landing(self) -> str:
        return str(self.region.warehouse / self.named("landing"))

    @property
    def new(self) -> str:
        """The path of the new version."""
        plan = self.controller.recorder.plan
        assert plan is not None
        state = plan.release.table(self.named("requests"))
        assert state is not None
        return self.controller.path(state.version.path)

    # -- releases

    def written(self, root: Path, *, first: bool = False, lenient: bool = False, status: str = STATUS) -> Path:
        """The pipeline's files.

        lenient  without what rows of the defects break
        status   the expression of that column
        """
        ms = MS.replace("CAST(", "TRY_CAST(") if lenient else MS
        added = f", {BYTES}" if first else f", {BYTES}, {status} AS status, {ms}"
        columns = COLUMNS + (", bytes: bigint}\n" if first else ", bytes: bigint, status: string, ms: double}\n")
        texts = {
            "pipeline.yaml": "description: watched after its promotion\n",
            "tables/landing.yaml": TABLE,
            "tables/requests.yaml": columns if first or lenient else columns + EXPECTED,
            "materializations/parse.sql": f"{PARSE}{added} FROM landing\n",
            "endpoints/of_day.sql": "/* parameters: {day: date} */\n"
            "SELECT id, ts, ip FROM requests WHERE day = :day ORDER BY id\n",
            "endpoints/of_day.calls.yaml": CALL,
            "endpoints/clean.sql": "/* parameters: {day: date} */\n"
            f"SELECT count(*) AS n FROM requests WHERE day = :day{'' if first or lenient else COSTLY}\n",
            "endpoints/clean.calls.yaml": NEWEST_CALL,
        }
        shutil.rmtree(root, ignore_errors=True)
        for name, text in texts.items():
            file = root / self.named(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.named(text))
        return root

    def watched(
        self, on_breach: OnBreach, query: str = QUERY, seconds: int = 3600, rules: Mapping[str, object] | None = None
    ) -> None:
        """The policy of the releases that follow. rules: further ones"""
        policy = {"watch": f"{seconds}s", "on_breach": on_breach, **(rules or {})}
        asks = {"watch_query": self.named(query)} if query else {}
        self.region.policy(f"policy: {json.dumps({**policy, **asks})}")

    async def begins(self, place: Path, **shape: Any) -> None:
        """Plan and accept a release. shape: as of `written`"""
        self.region.install(self.name, self.written(place, **shape))
        plan = await self.region.plan(self.name)
        assert not plan.refusals, plan.refusals
        self.controller.accept(plan, "ada", "laptop")

    async def at_gate(self) -> Status:
        """The release that was accepted, at its gate. raises AssertionError if a check has failed"""
        executor = self.controller.execution.executor
        assert executor is not None
        end = time.monotonic() + GATE_SECONDS
        while executor.is_alive() and time.monotonic() < end:  # not in a thread each: there are few for many pipelines
            await asyncio.sleep(0.2)
        status = self.status
        assert status.shown == "awaiting-confirmation", f"{self.name} at its gate: {status.why}"
        failed = [check for check in status.checks if check.ok is False]
        assert not failed, f"{self.name} at its gate: {failed}"
        return status

    def promote(self) -> None:
        status = self._without_doubts()
        self.controller.promote(status.rollout, status.was, "ada", "laptop")

    def approve(self) -> None:
        status = self._without_doubts()
        declare(
            self.controller, status.rollout, Approved(by="grace", host="laptop", checks=verdicts(status), ticket="")
        )

    def _without_doubts(self) -> Status:
        """A call that took longer than before, on a busy machine, is accepted."""
        status = self.status
        for check in unaccepted(status):
            doubt = CheckAccepted(table=check.table, check=check.check, detail=check.detail, reason="a busy host")
            status = declare(self.controller, status.rollout, doubt)
        return status

    async def releases(self, place: Path, **shape: Any) -> None:
        """Carry a release to its gate, and promote it. shape: as of `written`"""
        await self.begins(place, **shape)
        await self.at_gate()
        self.promote()

    # -- checks

    def until(self, true: Callable[[Status], bool], seconds: float = SECONDS) -> Status:
        """The agent's own rounds go on until this is true of the status."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.region.service.agent.tick()
            if true(self.status):
                return self.status
            time.sleep(0.1)
        raise AssertionError(f"still {self.status.watch} {self.status.watched} {self.status.checks}")

    def clean_rounds(self, number: int) -> WatchProgress:
        """Until so many rounds in a row were clean."""
        status = self.until(lambda status: status.watch is not None and status.watch.clean >= number)
        assert status.watch is not None
        return status.watch

    def breached(self, name: str) -> Breach:
        """The breach of a check, as soon as it is stored."""
        status = self.until(lambda status: any(breach.name == name for breach in status.watched.breaches))
        return next(breach for breach in status.watched.breaches if breach.name == name)

    def due(self, *kinds: str) -> None:
        """Of the checks that ask Spark, these are run in the next round, and no others. A round that began before this has ended."""
        loops = (self.region.service.agent.rounds._watch, self.region.service.agent.rounds._gate)
        for loop in loops:
            if loop._thread is not None:
                loop._thread.join(SECONDS)
        known = (loop._known.get(self.name) for loop in loops)
        for check in (check for each in known if each is not None for check in each.slow):
            check.due = 0.0 if check.name in kinds else math.inf

    # -- rows

    def arrive(self, *payloads: dict[str, Any], at: datetime = NEWEST) -> list[str]:
        """Live rows of one commit, with these values; returns their ids. Their times differ: none is a copy of another"""
        events = self.region.events(len(payloads))
        rows = [
            {**event, "ts": at + timedelta(seconds=n), "payload": json.dumps(self.payload(**payload))}
            for n, (event, payload) in enumerate(zip(events, payloads, strict=True))
        ]
        self.append(rows)
        return [str(row["id"]) for row in rows]

    def append(self, rows: list[dict[str, Any]]) -> None:
        """One commit of the producer."""
        write_deltalake(self.landing, pa.Table.from_pylist(rows, LANDING), mode="append")

    @staticmethod
    def payload(**values: Any) -> dict[str, Any]:
        return {"ip": "192.0.2.9", "status": "200", "bytes": 40, "ms": 1.5, **values}

    def follow(self) -> None:
        """Until every feed that moves has passed what has landed. A tick that began before may answer a request as well."""
        latest, end = log.latest_version(self.landing), time.monotonic() + SECONDS
        follower = self.controller.feeds.follower
        while follower.align(self.name).result(SECONDS)[self.landing] < latest:
            assert time.monotonic() < end

    def meets(self, wrong: Callable[[Any], Any], *payloads: dict[str, Any]) -> None:
        """Live rows, of which the new version's feed makes something else."""
        with wrong_feed(self.new, wrong):
            self.arrive(*payloads)
            self.follow()

    def rewrite(self, day: str, column: str = "", value: str = "", files: int = 1) -> None:
        """A compaction of a day that writes other files than it should, or another value: to readers of the log no row changes.

        column, value  an expression for one column
        """
        session = self.region.service.agent.spark.session()
        rows = session.read.format("delta").load(self.new).where(f"day = '{day}'")
        rows = rows.withColumn(column, expression(value)) if column else rows
        rows = session.createDataFrame(rows.collect(), rows.schema).repartition(files)
        options = {"replaceWhere": f"day = '{day}'", "dataChange": "false"}
        rows.write.format("delta").mode("overwrite").options(**options).save(self.new)

    def judged(self) -> list[dict[str, Any]]:
        """What another program says of the rows of live and of the release before. raises AssertionError if live lacks one"""
        script = [sys.executable, "-I", watched_rows.__file__, str(self.region.warehouse), self.name, self.suffix]
        judged = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
        assert judged.returncode == 0, judged.stdout + judged.stderr
        return [json.loads(line) for line in judged.stdout.splitlines()]


def expression(sql: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(sql)


@contextmanager
def wrong_feed(target: str, wrong: Callable[[Any], Any]) -> Iterator[None]:
    """The live feed of one version makes this of each range's rows."""
    compute = live_feed.compute

    def computed(session: Any, feed: live_feed.LiveFeed, stored: Any, joined: Any) -> Any:
        rows = compute(session, feed, stored, joined)
        return wrong(rows) if feed.target_path == target else rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_feed, "compute", computed)
        yield
