"""The process of a second Spark by itself: what it writes is files, what counts is the agent's commit, and it ends with the agent."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from console.agent.errors import SecondSparkLost
from console.agent.execution.batch import _order, _run_on_second, second_spark_for
from console.agent.expectations import guard
from console.agent.failure import ClassifiedFailure, kind
from console.agent.feeds import app_ids, backfill, commit
from console.agent.second_spark.messages import BatchFailed, BatchUnderWay, BatchWritten, Start, answer_in, line
from console.agent.second_spark.process import SecondSpark
from console.agent.settings import Settings, keep_settings, load_settings
from console.agent.spark_jobs import RunningJob
from console.agent.store import commits, log
from console.agent.store.file_action import FileAction
from console.drivers.local import agent_config
from console.errors import DataError
from console.model.measured import SparkJob
from console.model.region import BackfillSpark, Region, Spark
from console.model.schema import Column
from console.model.slices import Slice
from console.model.step import Backfill
from tests.faults.rules.tables import state
from tests.life.region import SHORT_LIVED

SETTINGS = Settings(region="eu backfill", master="local[1]", conf=dict(SHORT_LIVED))
COLUMNS = (
    Column(name="n", type="bigint"), Column(name="at", type="timestamp"), Column(name="price", type="decimal(9,2)"),
    Column(name="words", type="array<string>"), Column(name="day", type="date"), Column(name="place", type="string"),
)  # fmt: skip
SCHEMA = pa.schema([
    ("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("price", pa.decimal128(9, 2)), ("words", pa.list_(pa.string())),
    ("day", pa.date32()), ("place", pa.string()),
])  # fmt: skip
PLACES = ("Zürich / 50 %", "a=b c", None, "1")
WHOLE = Slice(index=1, label="all", first="", end="", rows=0, bytes=0)
REST = Slice(index=2, label="all", first="", end="", rows=0, bytes=0)
GONE_SECONDS = 30.0


def landing(place: Path, rows: int) -> list[dict[str, Any]]:
    made = [
        {"n": n, "at": datetime(2026, 11, 1 + n % 3, n % 24, tzinfo=UTC), "price": Decimal(n - 40) / 4,
         "words": None if n % 5 == 0 else [f"w{n}", None], "day": date(2026, 11, 1 + n % 3) if n % 7 else None,
         "place": PLACES[n % 4]}
        for n in range(rows)
    ]  # fmt: skip
    write_deltalake(str(place), pa.Table.from_pylist(made, SCHEMA))
    return made


def build(tmp_path: Path, sql: str = "SELECT * FROM landing") -> backfill.History:
    """A build of one table, taken over as a rollout does; no Spark is needed for that."""
    target, source = str(tmp_path / "copy"), str(tmp_path / "landing")
    wanted = state("copy", COLUMNS, partition_by=("day", "place"))
    commits.create(target, Schema.from_arrow(SCHEMA), ["day", "place"], {}, json.dumps({"kind": "create"}))
    step = Backfill(
        materialization="copied", source="landing", target="copy", route="replay", sql=sql, time="", rows=0, bytes=0, days=0,
        batches=1, second_spark=True,
    )  # fmt: skip
    return backfill.History(
        step=step,
        source=state("landing", COLUMNS, kind="landing"),
        source_path=source,
        target=wanted,
        target_path=target,
        fence=0,
        slices=(WHOLE, REST),
        writer=commit.open_feed(None, app_ids.history_id(target, "copied", 0), target, 0),
    )


def stored(history: backfill.History) -> list[dict[str, Any]]:
    rows = DeltaTable(history.target_path).to_pyarrow_table().select(SCHEMA.names).to_pylist()
    return sorted(rows, key=lambda row: int(row["n"]))


def seen(_: RunningJob) -> None:
    """Nobody watches."""


@pytest.fixture
def second(tmp_path: Path) -> Iterator[SecondSpark]:
    made = SecondSpark(SETTINGS, -1, str(tmp_path))
    yield made
    made.end()


@pytest.mark.spark
def test_it_writes_and_the_agent_commits_and_what_fails_there_is_judged_here(
    tmp_path: Path, second: SecondSpark
) -> None:
    rows = landing(tmp_path / "landing", 100)
    history = build(tmp_path)
    done = _run_on_second(second, history, (WHOLE,), seen)
    assert (done.rows_in, done.written.rows) == (100, 100)
    assert stored(history) == rows
    entry = log.commit(history.target_path, done.written.version)
    assert entry.txn == {history.writer.app_id: 1 << app_ids.EPOCH_BITS | 1}
    assert (entry.note["kind"], entry.note["slices"], entry.note["second_spark"]) == ("history", [1, 1], True)
    assert second.pid, "it waits for the next batch"
    process = second.pid
    failing = build_again(history, "SELECT CAST(place AS BIGINT) AS n, at, price, words, day, place FROM landing")
    with pytest.raises(ClassifiedFailure) as refused:
        _run_on_second(second, failing, (REST,), seen)
    assert kind(refused.value) == "value"
    assert "Zürich" not in str(refused.value), "no row's value is shown"
    assert not guard.refused(refused.value)
    assert log.latest_version(history.target_path) == done.written.version
    assert (second.pid, is_running(process)) == (0, False)


def build_again(history: backfill.History, sql: str) -> backfill.History:
    return replace(history, step=replace(history.step, sql=sql))


@pytest.mark.spark
def test_lost_in_the_middle_its_files_are_nobodys_rows_and_the_next_try_has_another(
    tmp_path: Path, second: SecondSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies when the batch is written, and nobody was told."""
    rows = landing(tmp_path / "landing", 100)
    history = build(tmp_path)
    (tmp_path / "crashes").mkdir()
    (tmp_path / "crashes" / "second-spark-wrote").touch()
    monkeypatch.setenv("CONSOLE_CRASH_DIR", str(tmp_path / "crashes"))
    before = log.latest_version(history.target_path)
    with pytest.raises(SecondSparkLost) as lost:
        _run_on_second(second, history, (WHOLE,), seen)
    assert kind(lost.value) == "passing"
    orphans = set((tmp_path / "copy").rglob("*.parquet"))
    assert orphans, "it had written"
    assert (log.latest_version(history.target_path), history.writer.position, second.pid) == (before, 0, 0)
    assert _run_on_second(second, history, (WHOLE,), seen).written.rows == 100
    assert stored(history) == rows
    entry = log.commit(history.target_path, log.latest_version(history.target_path))
    named = {Path(file.path) for file in entry.added}
    assert named == set((tmp_path / "copy").rglob("*.parquet")) - orphans
    second.end()
    assert second.pid == 0


# -- without Spark: the process itself


def test_what_it_cannot_do_at_all_is_said_with_its_code_and_remedy(
    tmp_path: Path, second: SecondSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Spark does not start: there are no jars."""
    monkeypatch.setenv("CONSOLE_JARS", str(tmp_path / "none"))
    landing(tmp_path / "landing", 3)
    history = build(tmp_path)
    with pytest.raises(ClassifiedFailure) as refused:
        second.write(_order(history, (WHOLE,), {}), seen)
    assert (refused.value.code, refused.value.hint, kind(refused.value)) == ("E_JARS", "console setup", "final")
    assert second.pid == 0


def test_a_batch_is_cancelled_by_the_end_of_its_process(tmp_path: Path, second: SecondSpark) -> None:
    landing(tmp_path / "landing", 3)
    jobs: list[RunningJob] = []

    def cancel_soon(job: RunningJob) -> None:
        jobs.append(job)
        threading.Thread(target=cancel, args=(job,), daemon=True).start()

    def cancel(job: RunningJob) -> None:
        while not second.pid:
            time.sleep(0.01)
        job.cancel()

    with pytest.raises(SecondSparkLost, match="it was killed") as lost:
        second.write(_order(build(tmp_path), (WHOLE,), {}), cancel_soon)
    assert kind(lost.value) == "passing", "whether it was cancelled, the rollout knows"
    assert (second.pid, jobs[0].fraction(), jobs[0].job()) == (0, 0.0, None)


def test_it_holds_the_regions_lock_beside_the_agent_and_ends_with_it(tmp_path: Path) -> None:
    """The agent dies, as far as its process is concerned: its end of the pipe closes, and its own lock is gone."""
    fd = os.open(tmp_path / "agent.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    command = [sys.executable, "-P", "-m", "console.agent", "backfill", "--warehouse", str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, pass_fds=(fd,))
    try:
        assert process.stdin
        process.stdin.write(line(Start(SETTINGS, fd)))
        process.stdin.flush()
        os.close(fd)
        rival = os.open(tmp_path / "agent.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(rival, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.stdin.close()
        assert process.wait(GONE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
    fcntl.flock(rival, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(rival)


def test_without_a_batch_for_long_it_is_ended_and_the_next_one_starts_another(
    tmp_path: Path, second: SecondSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.agent.second_spark.process.IDLE_SECONDS", 0.1)
    first = second._started().pid
    second._end_later()
    until = time.monotonic() + GONE_SECONDS
    while is_running(first) and time.monotonic() < until:
        time.sleep(0.05)
    assert (second.pid, is_running(first)) == (0, False)
    again = second._started().pid
    assert second._started().pid == again
    os.kill(again, signal.SIGKILL)
    while second.pid:
        time.sleep(0.05)
    assert second._started().pid != again


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- what both say


ANSWERS = (
    BatchUnderWay(0.5, None),
    BatchUnderWay(1.0, SparkJob(job=1, stage=1, stages=2, done=3, tasks=4, longest=1.5, median=0.5, spilled=0)),
    BatchWritten(
        rows=3,
        files=(FileAction(name="day=2026-11-01/x.parquet", bytes=9, values=(("day", None),), modified=1, stats="{}"),),
        warnings=("1 row fails `x`",),
    ),
    BatchFailed(why="a value does not convert", hint="", code="C301", what="value", unexpected=True),
)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_is_read_as_it_was_said_in_one_line(answer: Any) -> None:
    text = line(answer)
    assert (text.count("\n"), answer_in(text)) == (1, answer)
    with pytest.raises(DataError):
        answer_in(text[: len(text) // 2])


@pytest.mark.parametrize("unexpected", [True, False])
def test_a_failure_keeps_the_kind_that_it_was_given_where_it_happened(unexpected: bool) -> None:
    error = ClassifiedFailure("[UNEXPECTED]", what="memory", unexpected=unexpected)
    assert (kind(error), guard.refused(error)) == ("memory", unexpected)


# -- its settings


CONF = (("spark.driver.memory", "16g"),)
REGIONS = {
    "none": (None, {}),
    "local": (
        BackfillSpark(spark=Spark("local[8]", conf=CONF)),
        {"backfill_master": "local[8]", "backfill_conf": dict(CONF)},
    ),
    "defaults": (
        BackfillSpark(spark=Spark("spark://lake:7077", defaults="/etc/spark.conf"), rows=5),
        {"backfill_master": "spark://lake:7077", "backfill_conf": {}, "backfill_defaults": "/etc/spark.conf"},
    ),
}


@pytest.mark.parametrize("case", REGIONS)
def test_a_regions_second_spark_reaches_its_agent_and_is_kept_there(tmp_path: Path, case: str) -> None:
    """What is not there is not sent: an older agent would refuse the keys."""
    second, keys = REGIONS[case]
    sent = agent_config(Region(name="eu", warehouse=str(tmp_path), backfill_spark=second), 0.5)
    assert {key: value for key, value in sent.items() if key.startswith("backfill")} == keys
    settings = load_settings(json.dumps(sent))
    (tmp_path / "_console").mkdir()
    keep_settings(tmp_path, settings)
    kept = (tmp_path / "_console" / "agent.json").read_text()
    assert (load_settings(kept), json.loads(kept)) == (settings, sent)
    own = settings.second_spark
    assert (own is None) == (second is None)
    if own is not None and second is not None:
        assert (own.region, own.master, own.conf) == ("eu backfill", second.spark.master, dict(second.spark.conf))
        assert (own.spark_defaults, own.second_spark) == (second.spark.defaults, None)


@pytest.mark.parametrize(
    ("marked", "newest_days", "has_one", "warned"),
    [(True, None, True, False), (True, None, False, True), (True, 1, True, False), (False, None, True, False)],
)
def test_a_build_has_a_second_spark_of_its_own_if_it_was_planned_for_one(
    tmp_path: Path, marked: bool, newest_days: int | None, has_one: bool, warned: bool
) -> None:
    """Not a preview's, and not under an agent that was started without one, which says so."""
    lines: list[tuple[str, str]] = []
    made: list[SecondSpark] = []

    def start() -> SecondSpark:
        made.append(SecondSpark(SETTINGS, -1, str(tmp_path)))
        return made[-1]

    context: Any = SimpleNamespace(
        newest_days=newest_days,
        second_spark=start if has_one else None,
        recorder=SimpleNamespace(log=lambda text, level: lines.append((text, level))),
    )
    step = replace(build(tmp_path).step, second_spark=marked)
    with second_spark_for(context, step) as second:
        expected = marked and newest_days is None and has_one
        assert (second is not None, len(made)) == (expected, int(expected))
        if second is not None:
            second._started()
            assert second.pid
    left = [each.pid for each in made]
    for each in made:
        each.end()
    assert left == [0] * len(made), "it ended with the build"
    assert [level for _, level in lines] == ["warning"] * warned
