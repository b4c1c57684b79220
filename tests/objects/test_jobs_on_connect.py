"""Jobs through Spark Connect: what runs is told while it runs, and is ended from another thread."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from console.agent.connect.handle import ConnectHandle
from console.agent.settings import Settings
from console.agent.way_back import endpoints
from console.model.live import Release
from console.model.pipeline import Endpoint, Parameter
from tests.cluster.connect_server import ConnectServer
from tests.faults.rules.tables import foreign, rows, state

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

ENDLESS = "SELECT sum(id % 7) AS n FROM range(0, 1000000000000, 1, 8)"
SECONDS = 60.0
TAG = "history/a, b"


@pytest.fixture
def spark(connect: ConnectServer, monkeypatch: pytest.MonkeyPatch) -> ConnectHandle:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return ConnectHandle(Settings(region="us", remote=connect.url), "s3://lake/us")


def until(said: Callable[[], Any]) -> Any:
    ends = time.monotonic() + SECONDS
    while (found := said()) is None:
        assert time.monotonic() < ends
        time.sleep(0.1)
    return found


def test_a_job_is_told_and_cancelled_and_by_no_other_session(spark: ConnectHandle) -> None:
    session, other = spark.live_session(), spark.live_session()
    ended: list[str] = []

    def run() -> None:
        with spark.job(session, TAG), pytest.raises(PySparkException) as broken:
            session.sql(ENDLESS).collect()
        ended.append(broken.value.getCondition() or "")

    try:
        with spark.job(session, TAG) as jobs, spark.job(other, TAG) as theirs:
            assert (jobs.fraction(), jobs.job()) == (0.0, None)
            running = threading.Thread(target=run, daemon=True)
            running.start()
            told = until(jobs.job)
            assert (told.done, told.tasks, told.stage, told.stages > 0, jobs.fraction()) == (0, 8, 1, True, 0.0)
            theirs.cancel()
            time.sleep(1.0)
            assert running.is_alive()
            jobs.cancel()
            running.join(SECONDS)
        assert ended == ["OPERATION_CANCELED"]
        assert session.getTags() == set()
    finally:
        spark.give_up(session)  # whatever still runs in it ends with it
        spark.give_up(other)


def test_a_build_takes_all_of_the_servers_slots_but_one(spark: ConnectHandle) -> None:
    session = spark.build_session()
    assert (spark.slots, spark.build_tasks) == (2, 1)
    assert session.conf.get("spark.sql.files.maxPartitionNum") == "1"


def test_an_endpoint_is_tried_on_the_way_back_and_one_that_does_not_answer_is_ended(
    spark: ConnectHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = foreign(tmp_path / "copy", rows(1, 2))
    by_day = Endpoint(
        name="by_day", sql="SELECT n FROM copy WHERE day = :day", parameters=(Parameter("day", "date", "2026-11-01"),)
    )
    endless = Endpoint(name="endless", sql=ENDLESS)
    wrong = Endpoint(name="wrong", sql="SELECT no_such FROM copy")
    release = Release(
        id="r0", pipeline="web", digest="d", tables=(state("copy"),), feeds=(), endpoints=(by_day, endless, wrong)
    )
    monkeypatch.setattr(endpoints, "ASK_SECONDS", SECONDS)  # a server's first queries take some seconds
    assert endpoints._asked(spark, release, by_day, {"copy": table}, None) is None
    failed = endpoints._asked(spark, release, wrong, {"copy": table}, None)
    assert failed is not None
    assert (failed.state, "no longer compiles" in failed.why) == ("failed", True)
    monkeypatch.setattr(endpoints, "ASK_SECONDS", 3.0)
    late = endpoints._asked(spark, release, endless, {}, None)
    assert late is not None
    assert (late.state, late.why) == ("inconclusive", "no answer within 3 s")
