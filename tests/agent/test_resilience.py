"""Failing batches on real Spark and Delta: transient failures leave no trace, others are reported, counted or quarantined.

The agent runs in this process, so that faults can be injected at exact places; one JVM for all tests.
"""

import json
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from console.agent.execution import backfill_step, validation
from console.agent.feeds import backfill, commit
from console.agent.resilience import quarantine, retry
from console.agent.resilience.throttle import Brake
from console.agent.service import Service
from console.agent.settings import Settings
from console.agent.spark_jobs import JobGroup
from console.model.account import account
from console.model.calendar import calendar
from console.model.codec import encode
from console.model.event import ENDED, BatchDone, BatchStarted, Fenced, Logged
from console.model.incident import TryFailed, WaitBegan, WaitEnded
from console.model.plan import Plan
from console.model.status import Status
from tests.life.region import LANDING, SHORT_LIVED, LiveRegion, multiset

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
TABLE = "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
PARSE = "/* into: requests */\nSELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip"
COLUMNS = "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string"
BAD = 3  # rows whose status is no number


def files(root: Path, column: str = "", expression: str = "") -> Path:
    """The pipeline, with one column more where one is given."""
    texts = {
        "pipeline.yaml": "description: rows that do not convert\n",
        "tables/landing.yaml": TABLE,
        "tables/requests.yaml": COLUMNS + (f", {column}" if column else "") + "}\n",
        "materializations/parse.sql": PARSE + (f", {expression}" if expression else "") + " FROM landing\n",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


class Region(LiveRegion):
    """A region whose agent is this process; no console, no socket."""

    def __init__(
        self, root: Path, *, most: int = 200, conf: Mapping[str, str] = SHORT_LIVED, tick_seconds: float = 0.2
    ) -> None:
        """most: rows a batch; a few batches by default"""
        super().__init__(root, rows=300, most=most)
        self._spoil()
        settings = Settings(region="eu", master="local[2]", conf={**conf}, tick_seconds=tick_seconds)
        self.service = Service(self.warehouse, settings, -1)
        (self.warehouse / "_console").mkdir()  # the lock's, which nobody takes here
        self.service.agent.start()
        self.controller = self.service.agent.controller("web")
        self._number = 0

    def _spoil(self) -> None:
        odd = [{**self._next(), "payload": json.dumps({"ip": "192.0.2.9", "status": f"s3cr3t{n}"})} for n in range(BAD)]
        write_deltalake(str(self.warehouse / "landing"), pa.Table.from_pylist(odd, LANDING), mode="append")
        self.bad = {row["id"] for row in odd}

    def policy(self, text: str) -> None:
        file = self.root / "regions" / "eu.yaml"
        kept = re.sub(r"(?m)^(policy|throttle):.*\n", "", file.read_text())
        file.write_text(kept + text + "\n")

    async def planned(self, place: Path, column: str = "", expression: str = "") -> Plan:
        if self.controller.recorder.status.state not in (*ENDED, "none"):
            self.discard()  # a test before this one has failed
        self._number += 1
        self.install("web", files(place / str(self._number), column, expression))
        plan = await self.plan("web")
        assert not plan.refusals, plan.refusals
        return plan

    def carry(self, plan: Plan) -> Status:
        """Carry a plan until it stands: at its gate, or failed."""
        self.service.accept(encode(plan), "ada", "laptop")
        return self.stands()

    def stands(self) -> Status:
        carrier = self.controller.execution.executor
        assert carrier is not None
        carrier.join(600)
        assert not carrier.is_alive(), self.controller.recorder.status
        return self.controller.recorder.status

    def promote(self) -> None:
        status = self.controller.recorder.status
        self.controller.promote(status.rollout, status.was, "ada", "laptop")

    def discard(self) -> None:
        self.controller.control("discard", "ada")

    def built(self) -> list[tuple[Any, ...]]:
        """Rows of the version being built or, after promotion, live: id and the day."""
        plan = self.controller.recorder.plan
        assert plan is not None
        state = plan.release.table("requests")
        assert state is not None
        rows = DeltaTable(str(self.warehouse / state.version.path)).to_pyarrow_table(columns=["id", "day"]).to_pylist()
        return [(row["id"], row["day"]) for row in rows]

    def wanted(self, without: set[str] | None = None) -> list[tuple[Any, ...]]:
        left_out = without or set()
        return [row for row in self.truth("SELECT id, CAST(ts AS DATE) FROM landing") if row[0] not in left_out]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Region]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retry, "FIRST_SECONDS", 0.05)
        live = Region(tmp_path_factory.mktemp("resilience"))
        try:
            first = live.carry(await live.planned(live.root / "first"))
            assert first.shown == "awaiting-confirmation", first.why
            live.promote()
            yield live
        finally:
            live.service.agent.stop()
            await live.close()


@contextmanager
def failing(faults: list[Callable[[Callable[[], Any]], Any]]) -> Iterator[list[int]]:
    """The next history commits do as the deeds say, each told how to commit; the list counts all that were begun."""
    real, begun = commit.append, [0]

    def append(session: Any, rows: Any, writer: Any, position: int, note: dict[str, Any]) -> Any:
        if note.get("kind") != "history":
            return real(session, rows, writer, position, note)
        begun[0] += 1
        return (faults.pop(0) if faults else lambda go: go())(lambda: real(session, rows, writer, position, note))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "append", append)
        yield begun
    assert not faults, "not every fault came about"


def refuses(_: Callable[[], Any]) -> Any:
    raise OSError(5, "Input/output error")


def loses_the_answer(go: Callable[[], Any]) -> Any:
    go()
    raise ConnectionResetError(104, "Connection reset by peer")


async def test_what_heals_is_tried_again_and_no_row_is_lost_or_there_twice(region: Region, tmp_path: Path) -> None:
    plan = await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua")
    with failing([refuses, loses_the_answer, refuses, refuses]) as begun:
        status = region.carry(plan)
    assert status.shown == "awaiting-confirmation", status.why
    assert [check for check in status.checks if check.ok is not True] == []
    counted, truth = multiset(region.built()), multiset(region.wanted())
    assert (counted - truth, truth - counted) == ({}, {})
    done = region.controller.recorder.events(BatchDone)
    assert sorted(batch.position for batch in done) == sorted({batch.position for batch in done}), "a receipt twice"
    assert begun[0] == 4 + len(done) - 1  # the one whose answer was lost had been committed
    assert any("try 2 of 3" in line for line in status.log)
    region.discard()


async def test_after_three_tries_it_has_failed_and_retry_goes_on_from_there(region: Region, tmp_path: Path) -> None:
    plan = await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua")
    with failing([lambda go: go(), refuses, refuses, refuses]):
        status = region.carry(plan)
    assert status.held == "failed"
    assert "failed 3 times: [Errno 5] Input/output error" in status.why
    assert len(region.controller.recorder.events(BatchDone)) == 1
    region.controller.control("retry", "ada")
    assert region.stands().shown == "awaiting-confirmation"
    counted, truth = multiset(region.built()), multiset(region.wanted())
    assert (counted - truth, truth - counted) == ({}, {})
    assert len({(b.first, b.last) for b in region.controller.recorder.events(BatchStarted)}) > 1
    region.discard()


async def test_the_region_remembers_each_day_each_try_each_wait_and_where_the_time_went(
    region: Region, tmp_path: Path
) -> None:
    plan = await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua")
    hold = region.warehouse / "_console" / "pause"
    hold.write_text("lunch")

    def let_go() -> None:
        """Once the wait is stored."""
        end = time.monotonic() + 120
        while region.controller.recorder.status.waiting is None and time.monotonic() < end:
            time.sleep(0.1)
        hold.unlink()

    letting_go = threading.Thread(target=let_go)
    letting_go.start()
    with failing([refuses]):
        status = region.carry(plan)
    letting_go.join()
    assert status.shown == "awaiting-confirmation", status.why
    now = time.time()
    events = region.controller.rollouts.events(status.rollout)
    (fenced,) = region.controller.recorder.events(Fenced)
    assert sum(day.slices for day in fenced.days) == fenced.slices
    assert sum(day.rows for day in fenced.days) == fenced.rows
    (step,) = calendar(events)
    assert {day.state for day in step.days} <= {"done", "retried"}
    tried = [day for day in step.days if day.tries]
    assert {day.causes for day in tried} == {("passing",)}
    assert sum({day.batch.position: day.batch.rows_in for day in step.days if day.batch}.values()) == fenced.rows
    incidents = [line.incident for line in region.controller.recorder.events(Logged)]
    began, ended, failed = incidents
    assert isinstance(began, WaitBegan)
    assert began.cause == "pause"
    assert isinstance(ended, WaitEnded)
    assert isinstance(failed, TryFailed)
    assert (failed.first, failed.number, failed.rows_next) == (1, 1, 0)
    divided = account(events, now)
    assert sum(part.seconds for part in divided.parts) == pytest.approx(now - status.started, abs=1.0)
    assert divided.of("waiting", "pause").seconds == pytest.approx(ended.seconds, abs=1.0)
    assert divided.of("batches").times == len(region.controller.recorder.events(BatchDone))
    assert divided.of("tries").seconds >= failed.seconds
    region.discard()


async def test_a_running_job_says_its_stage_its_tasks_and_how_long_the_longest_takes(
    region: Region, tmp_path: Path
) -> None:
    session, released = region.service.agent.spark.session(), tmp_path / "released"

    def slow(number: int) -> None:
        """The fourth task lasts until it is released."""
        deadline = time.monotonic() + 60
        while number == 3 and not released.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)

    def run() -> None:
        with region.service.agent.spark.job(session, "told"):
            session.sparkContext.parallelize(range(4), 4).foreach(slow)

    session.sparkContext.parallelize(range(6), 6).foreach(lambda _: None)  # starts Python's workers
    running, group = threading.Thread(target=run), JobGroup(session.sparkContext, "told")
    running.start()
    while running.is_alive():
        job = group.job()
        if job and job.done == 3 and job.longest > job.median + 2.0:
            break
        time.sleep(0.1)
    released.touch()
    assert job
    assert (job.stage, job.stages, job.done, job.tasks) == (1, 1, 3, 4)
    assert 0.2 <= job.median < job.longest - 2.0
    running.join()
    assert group.job() is None
    began = time.perf_counter()
    assert JobGroup(session.sparkContext, "none").job() is None
    assert time.perf_counter() - began < 30.0  # it waits for nothing


STATUS = ("status: int", "CAST(get_json_object(payload, '$.status') AS INT) AS status")


async def test_values_that_do_not_convert_fail_at_once_with_their_number_and_keys(
    region: Region, tmp_path: Path
) -> None:
    region.policy(f"policy: {{quarantine_rows: {BAD - 1}}}")
    status = region.carry(await region.planned(tmp_path, *STATUS))
    assert status.held == "failed"
    assert not any("try 2 of 3" in line for line in status.log), "trying again does not help"
    assert re.search(r"requests: \d rows? do(es)? not convert in ", status.why), status.why
    assert f"of the {BAD - 1} that policy.quarantine_rows allows are left: [CAST_INVALID_INPUT]" in status.why
    assert "s3cr3t" not in status.why, "values are nobody's business"
    named = set(re.findall(r"id=(\w+)", status.why))
    assert named <= region.bad
    assert named
    assert "try_cast" in status.hint
    assert "policy.quarantine_rows" in status.hint
    region.discard()


async def test_as_many_as_the_operator_allows_are_set_aside_once_with_their_batch(
    region: Region, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent dies, as far as its thread can, after a commit that passed over rows and before it wrote them down."""
    region.policy(f"policy: {{quarantine_rows: {BAD}}}")
    plan = await region.planned(tmp_path, *STATUS)
    record = quarantine.Quarantine.record

    def dies(*_: Any) -> None:
        monkeypatch.setattr(quarantine.Quarantine, "record", record)
        raise MemoryError

    monkeypatch.setattr(quarantine.Quarantine, "record", dies)
    assert region.carry(plan).held == "failed"
    region.controller.control("retry", "ada")
    status = region.stands()
    assert status.shown == "awaiting-confirmation", status.why
    assert status.quarantined == BAD
    rows = quarantine.Quarantine(region.warehouse / "_console" / "web").rows(status.rollout)
    assert sorted(re.sub(r"id=(\w+),.*", r"\1", row["key"]) for row in rows) == sorted(region.bad)
    assert {row["fence"] for row in rows} == {fenced.version for fenced in region.controller.recorder.events(Fenced)}
    assert "s3cr3t" not in json.dumps(rows)
    counted, truth = multiset(region.built()), multiset(region.wanted(region.bad))
    assert (counted - truth, truth - counted) == ({}, {})
    checks = {check.check: check for check in status.checks}
    assert checks["history is complete"].ok is True
    assert checks["rows per day"].ok is checks["unchanged columns"].ok is True
    assert checks["rows per day"].detail.endswith(f"; {BAD} rows in quarantine are not counted")
    text = "SELECT rollout, count(*) FROM _console_quarantine GROUP BY rollout"
    answer = region.service.query("web", text, ["_console_quarantine"], {}, 100)
    assert [status.rollout, BAD] in answer["rows"]
    region.discard()
    region.policy("")


@pytest.mark.parametrize(
    "place", ["the days", pytest.param("what does not convert", marks=pytest.mark.soak), "the comparison"]
)
async def test_a_pause_waits_for_nothing_that_spark_is_asked_outside_of_a_batch(
    region: Region, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    begun = threading.Event()

    def endless(session: Any, *_: Any, **__: Any) -> Any:
        begun.set()
        return session.sql("SELECT sum(hash(id)) FROM range(0, 1000000000000000, 1, 2)").collect()

    match place:
        case "the days":
            monkeypatch.setattr(backfill_step, "INEXACT_SHARE", -1.0)
            monkeypatch.setattr(backfill, "count_days", endless)
        case "what does not convert":
            monkeypatch.setattr(quarantine, "key_texts", lambda rows, *_: endless(rows.sparkSession))
        case _:
            region.policy(f"policy: {{quarantine_rows: {BAD}}}")
            monkeypatch.setattr(validation, "compare", endless)
    plan = await region.planned(tmp_path, *STATUS)
    region.service.accept(encode(plan), "ada", "laptop")
    carrier = region.controller.execution.executor
    assert carrier is not None
    pausing = threading.Thread(target=region.controller.control, args=("pause", "ada"), daemon=True)
    try:
        while not begun.wait(0.1):
            assert carrier.is_alive(), region.controller.recorder.status
        pausing.start()
        pausing.join(120)
        assert region.controller.recorder.status.held == "paused"
    finally:
        region.service.agent.spark.session().sparkContext.cancelAllJobs()
    region.discard()
    region.policy("")


async def test_the_throttles_query_is_asked_of_the_live_release_on_real_spark(region: Region, tmp_path: Path) -> None:
    region.policy('throttle: {query: "SELECT count(*) > 100000 FROM requests"}')
    plan = await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua")
    region.service.accept(encode(plan), "ada", "laptop")
    recorder = region.controller.recorder
    while "throttle.query answers false, not true" not in recorder.status.why:
        assert recorder.status.held == "", recorder.status.why
        assert region.controller.execution.executor is not None
        region.controller.execution.executor.join(0.05)
    assert recorder.status.shown == "backfilling"
    assert recorder.events(BatchStarted) == ()
    region.discard()
    region.policy('throttle: {query: "SELECT count(*) > 100 FROM requests"}')
    status = region.carry(await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua"))
    assert status.shown == "awaiting-confirmation"
    region.discard()
    region.policy("")


async def test_files_that_are_gone_fail_at_once_and_name_the_remedy(region: Region, tmp_path: Path) -> None:
    plan = await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua")
    landing = region.warehouse / "landing"
    shutil.copytree(landing, tmp_path / "kept")
    hold = Brake.hold

    def vacuumed(brake: Brake, step: str) -> None:
        """Between the fence and the first batch."""
        for file in landing.glob("*.parquet"):
            file.unlink(missing_ok=True)
        hold(brake, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Brake, "hold", vacuumed)
        status = region.carry(plan)
    shutil.copytree(tmp_path / "kept", landing, dirs_exist_ok=True)
    assert status.held == "failed"
    (fence,) = {fenced.version for fenced in region.controller.recorder.events(Fenced)}
    assert f"files of version {fence} of landing that it reads are gone" in status.why
    assert "plan again" in status.hint
    region.discard()


def declared(table: Path, old: str, new: str) -> None:
    """What somebody else's ALTER TABLE commits: the same files under a schema with another type."""
    opened = DeltaTable(str(table))
    fields = json.loads(opened.schema().to_json())
    for column in fields["fields"]:
        column["type"] = new if column["type"] == old and column["name"] == "payload" else column["type"]
    stored = opened.metadata()
    action = {
        "id": str(stored.id), "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(fields),
        "partitionColumns": stored.partition_columns, "configuration": stored.configuration, "createdTime": stored.created_time,
    }  # fmt: skip
    log = table / "_delta_log" / f"{opened.version() + 1:020}.json"
    with log.open("x") as out:
        out.write(json.dumps({"metaData": action}) + "\n")


async def test_a_source_altered_between_two_batches_stops_the_rollout_in_front_of_the_next(
    region: Region, tmp_path: Path
) -> None:
    plan = await region.planned(tmp_path, "ua: string", "get_json_object(payload, '$.ua') AS ua")
    landing = region.warehouse / "landing"

    def then_altered(go: Callable[[], Any]) -> Any:
        done = go()
        declared(landing, "string", "binary")
        return done

    try:
        with failing([then_altered]) as begun:
            status = region.carry(plan)
    finally:
        declared(landing, "binary", "string")
    assert (status.held, begun) == ("failed", [1])
    assert "payload was string, is binary" in status.why
    assert "discard" in status.hint
    region.discard()
