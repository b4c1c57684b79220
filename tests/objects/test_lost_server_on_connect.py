"""A Spark Connect server that is lost in a batch: the rollout waits, and ends whole once there is a server at its address again."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest
from deltalake import QueryBuilder

from tests.cluster.connect_server import ConnectServer
from tests.objects.region import CHANGED, Region
from tests.objects.sparks import IN_A_SESSION
from tests.objects.test_rollout_on_connect import is_whole

pytestmark = [pytest.mark.cluster, pytest.mark.s3, pytest.mark.soak]
ROWS = 3000
BEGUN_SECONDS, LOOK_SECONDS = 300.0, 0.1
AWAY_SECONDS = 20.0
TRIES = 10


@pytest.fixture
def connect_server(bare_region: Region, tmp_path: Path) -> Iterator[ConnectServer]:
    (tmp_path / "connect").mkdir()
    started = ConnectServer(folder=tmp_path / "connect", bucket=True, environment=bare_region.environment)
    try:
        started.start()
        bare_region.spark = {"remote": started.url, "conf": IN_A_SESSION}
        yield started
    finally:
        started.stop()


def stored(region: Region, rollout: str, kind: str) -> int:
    """Events of a kind that the region has stored of a rollout."""
    events = QueryBuilder().register("t", region.table("_console/web/rollouts"))
    found = events.execute(f"SELECT event FROM t WHERE rollout = '{rollout}'").read_all()
    return sum(f'"{kind}"' in event for event in found.column("event").to_pylist())


def until_a_batch_has_begun(region: Region, rollout: str) -> None:
    until = time.monotonic() + BEGUN_SECONDS
    while not stored(region, rollout, "BatchStarted"):
        assert time.monotonic() < until
        time.sleep(LOOK_SECONDS)


def test_a_server_that_is_lost_in_a_batch_costs_and_doubles_no_row(
    bare_region: Region, connect_server: ConnectServer
) -> None:
    region = bare_region
    region.write()
    region.produce(ROWS)
    region.console("apply", "--yes")
    region.write(CHANGED)
    with Popen(region.command("apply", "--yes"), cwd=region.home / "project", env=dict(region.environment)) as console:
        until_a_batch_has_begun(region, "web-2")
        os.kill(connect_server.jvm, signal.SIGSTOP)
        assert not stored(region, "web-2", "BatchDone"), "it is in the middle of its batch"
        connect_server.stop()
        region.produce(10)
        time.sleep(AWAY_SECONDS)
        connect_server.start()
        console.wait()
    for _ in range(TRIES):
        if region.attempt("apply", "--yes").returncode == 0:
            break
        region.attempt("retry", "--region", "us")
    is_whole(region, "live", "previous")
    assert set(region.table(region.paths()["requests"]).to_pyarrow_table()["status"].to_pylist()) == set(
        range(200, 205)
    )
