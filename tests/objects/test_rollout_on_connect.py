"""A region in a bucket whose Spark is behind Spark Connect: rollouts, there and back, while a producer goes on, with no JVM of the agent's.

What is there is judged by deltalake and DuckDB, of another process and another language than what has written it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest

from tests.cluster.connect_server import ConnectServer
from tests.objects import test_region as lives
from tests.objects.region import CHANGED, LOOK_SECONDS, SECONDS, Region, becomes, tidied
from tests.objects.sparks import IN_A_SESSION
from tests.objects.test_region_on_connect import has_no_jvm
from tests.objects.test_region_uses import _previewed as previewed

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

ROWS, PAUSE_SECONDS = 10, 5.0  # of the producer
ENDS_SECONDS = 45.0  # after it was asked to; one that hangs is killed after 60


@pytest.fixture
def region(bare_region: Region, connect: ConnectServer) -> Region:
    bare_region.spark = {"remote": connect.url, "conf": IN_A_SESSION}
    bare_region.write()
    bare_region.produce(60)
    return bare_region


@contextmanager
def producing(region: Region) -> Iterator[None]:
    over = threading.Event()

    def produce() -> None:
        while not over.wait(PAUSE_SECONDS):
            region.produce(ROWS, days=1)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def days_differ(region: Region, state: str) -> int:
    """Days of a release's aggregate whose merged count is not that of the rows which landed."""
    paths = region.paths(state)
    db = duckdb.connect()
    for name in ("landing", "per_day"):
        db.register(name, region.table(paths[name]).to_pyarrow_table())
    landed = "SELECT CAST(ts AT TIME ZONE 'UTC' AS DATE) AS day, count(*) AS n FROM landing GROUP BY ALL"
    merged = "SELECT day, CAST(sum(requests) AS BIGINT) AS n FROM per_day GROUP BY ALL"
    differing = f"(({landed}) EXCEPT ({merged})) UNION ALL (({merged}) EXCEPT ({landed}))"
    return int(db.sql(f"SELECT count(*) FROM ({differing})").fetchall()[0][0])


def is_whole(region: Region, *states: str) -> None:
    for state in states:
        becomes(region, region.sent, state)
        until = time.monotonic() + SECONDS  # the aggregate follows the table that feeds it
        while days_differ(region, state) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        assert days_differ(region, state) == 0


def test_a_change_goes_there_and_back_while_rows_arrive(region: Region) -> None:
    region.console("apply", "--yes")
    region.write(CHANGED)
    with producing(region):
        region.console("apply", "--yes")
        region.console("rollback", "--region", "us", "--yes")
    is_whole(region, "live", "previous")
    rows = region.table(region.paths("previous")["requests"]).to_pyarrow_table()
    assert set(rows["status"].to_pylist()) == set(range(200, 205))
    assert has_no_jvm(region)
    began = time.monotonic()
    region.end()
    assert time.monotonic() - began < ENDS_SECONDS, "an agent does not wait for what its connections do"


# with agents killed at commits of history and around the promotion: the test itself, with this file's region
test_an_agent_killed_here_is_succeeded_and_no_row_is_lost_or_doubled = (
    lives.test_an_agent_killed_here_is_succeeded_and_no_row_is_lost_or_doubled
)


@pytest.mark.soak
def test_a_change_is_previewed_goes_there_again_and_what_is_left_behind_is_dropped_and_put_together(
    region: Region,
) -> None:
    region.produce(240)
    region.console("apply", "--yes")
    region.write(CHANGED)
    previewed(region)
    region.console("apply", "--yes")
    changed = region.live()
    with producing(region):
        region.console("rollback", "--region", "us", "--yes")
        region.console("rollback", "--region", "us", "--yes", "--to", changed)
    assert region.live() == changed
    is_whole(region, "live", "previous")
    assert "all" in region.console("verify", "--rollout", "web-2")
    tidied(region)
    is_whole(region, "live")
    assert has_no_jvm(region)
