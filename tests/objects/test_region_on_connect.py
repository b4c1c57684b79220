"""A region in a bucket whose Spark is behind Spark Connect: its live release is read, followed and kept without a JVM of the agent's own."""

import json
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.feeds import app_ids
from console.agent.feeds.live_feed import SMALL_ROWS
from console.agent.object_store.object_path import ObjectPath
from console.model.event import Entered
from console.model.live import Feed, Release, TableState, Version
from console.model.pipeline import Copy, Endpoint, Parameter, Sink
from console.model.schema import Column
from tests.cluster.connect_server import ConnectServer
from tests.cluster.standalone import free_port
from tests.faults.rules.tables import commit_rows, number, state
from tests.objects.holders import agent
from tests.objects.proxy import Proxy
from tests.objects.region import Region

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

LANDING = (Column(name="id", type="string"), Column(name="ts", type="timestamp"), Column(name="payload", type="string"))
REQUESTS = (
    Column(name="id", type="string"),
    Column(name="ts", type="timestamp"),
    Column(name="day", type="date"),
    Column(name="cost", type="decimal(9,2)"),
)
DAYS = (Column(name="day", type="date"), Column(name="requests", type="bigint"))
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
SECONDS = 90.0


@pytest.fixture
def region(bare_region: Region, warehouse: ObjectPath, proxy: Proxy, connect: ConnectServer) -> Region:
    return built(bare_region, warehouse, proxy, connect.url)


@pytest.fixture
def cut_off(bare_region: Region, warehouse: ObjectPath, proxy: Proxy) -> Region:
    """Its server does not answer."""
    return built(bare_region, warehouse, proxy, f"sc://127.0.0.1:{free_port()}")


def built(bare_region: Region, warehouse: ObjectPath, proxy: Proxy, remote: str) -> Region:
    """With a live release that a Spark of another day has built."""
    bare_region.spark = {"remote": remote}
    bare_region.write()
    bare_region.produce(6)
    holder = agent(warehouse, proxy)
    rows = pa.table(
        {
            "id": [f"r{n}" for n in range(6)],
            "ts": pa.array([NOON + timedelta(days=n % 3) for n in range(6)], pa.timestamp("us", "UTC")),
            "day": [(NOON + timedelta(days=n % 3)).date() for n in range(6)],
            "cost": pa.array([Decimal(n) / 4 for n in range(6)], pa.decimal128(9, 2)),
        }
    )
    target = str(warehouse / "requests" / "c0-1")
    write_deltalake(target, rows.slice(0, 0), partition_by=["day"])
    feed = Feed(
        materialization="parse",
        source="landing",
        target="requests",
        sql="SELECT id, ts, to_date(ts) AS day, CAST(1 AS DECIMAL(9,2)) AS cost FROM landing",
    )
    commit_rows(target, app_ids.live_id(target, feed), number(1, 0), rows)
    sums = pa.table({"day": [date(2026, 11, 1)] * 2 + [date(2026, 11, 2)], "requests": [1, 1, 2]})
    for part in (sums.slice(0, 1), sums.slice(1)):  # two files of one day
        write_deltalake(str(warehouse / "per_day" / "c0-1"), part, partition_by=["day"], mode="append")
    holder.releases.propose(released(feed), "web-1", "ada", "laptop")
    holder.releases.swap("", "r1", "ada", "laptop")
    holder.rollouts.append("web-1", 1, Entered("live"))
    holder.tenure.lease.release()
    return bare_region


def released(feed: Feed) -> Release:
    """Three tables whose reads all go over a view named `stored`, one of them with a merge."""
    landing = placed(state("landing", LANDING, kind="landing", partition_by=()), "landing")
    requests = placed(state("requests", REQUESTS, time="ts"), "requests/c0-1")
    days = placed(state("per_day", DAYS), "per_day/c0-1")
    merged = "SELECT day, sum(requests) AS requests FROM stored GROUP BY day"
    per_day = TableState(table=days.table, version=days.version, read=merged, rows="", values={})
    by_day = "SELECT day, count(*) AS n, sum(cost) AS cost FROM requests WHERE day = :day GROUP BY day"
    endpoint = Endpoint(name="by_day", sql=by_day, parameters=(Parameter("day", "date"),))
    copy = Copy(name="all_days", into="all_days", sql="SELECT day, requests FROM per_day")
    sink = Sink(name="dump", path="exports/dump", sql="SELECT id FROM requests")
    return Release(
        id="r1", pipeline="web", digest="d", tables=(landing, requests, per_day), feeds=(feed,), endpoints=(endpoint,),
        copies=(copy,), sinks=(sink,),
    )  # fmt: skip


def placed(known: TableState, path: str) -> TableState:
    version = Version(content="c0", path=path, columns=known.version.columns, partition_by=known.version.partition_by)
    return TableState(table=known.table, version=version, read=known.read, rows="", values={})


def descendants(pid: int) -> list[int]:
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [found for child in children for found in (child, *descendants(child))]


def asked(region: Region, *words: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(region.console(*words, "--region", "us", "--output", "json"))["rows"]
    return rows


def refused(region: Region, *words: str) -> str:
    done = region.attempt(*words)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def has_no_jvm(region: Region) -> bool:
    """Of the region's agent and everything that it has started."""
    (pid,) = region.running()
    family = (pid, *descendants(pid))
    return not any("libjvm" in Path(f"/proc/{each}/maps").read_text() for each in family)


def test_the_live_release_is_read_without_a_jvm_of_the_agents_own(region: Region, connect: ConnectServer) -> None:
    joined = (
        "SELECT p.day, p.requests, count(*) AS n, sum(r.cost) AS cost FROM per_day p JOIN requests r ON r.day = p.day"
        " GROUP BY ALL ORDER BY day"
    )
    # both tables are shown through a view of one name
    assert asked(region, "query", joined) == [
        {"day": "2026-11-01", "requests": 2, "n": 2, "cost": "0.75"},
        {"day": "2026-11-02", "requests": 2, "n": 2, "cost": "1.25"},
    ]
    assert has_no_jvm(region)
    assert "libjvm" in Path(f"/proc/{connect.jvm}/maps").read_text()
    assert asked(region, "endpoint", "by_day", "--param", "day=2026-11-03") == [
        {"day": "2026-11-03", "n": 2, "cost": "1.75"}
    ]
    words = ("--param", "id=r1", "--param", "most=1", "--param", 'said=it\'s :id \\ "so"')
    assert asked(
        region, "query", "SELECT id, :said AS said FROM requests WHERE id >= :id ORDER BY id LIMIT :most", *words
    ) == [{"id": "r1", "said": 'it\'s :id \\ "so"'}]
    odd = (
        "SELECT max(ts) AS at, CAST('NaN' AS DOUBLE) AS nan, date_add(DATE'9999-12-31', 1) AS far, array(1, 2) AS list,"
        " map('a', 1) AS m, named_struct('a', 1) AS s, X'00FF' AS b, CAST(NULL AS INT) AS n FROM requests"
    )
    (row,) = asked(region, "query", odd)
    assert row == {
        "at": "2026-11-03T12:00:00", "nan": "nan", "far": "+10000-01-01", "list": [1, 2], "m": {"a": 1}, "s": [1],
        "b": "00ff", "n": None,
    }  # fmt: skip
    assert "DIVIDE_BY_ZERO" in refused(
        region, "query", "--region", "us", "SELECT 1 / (count(*) - count(*)) AS n FROM requests"
    )
    assert has_no_jvm(region)


def stored(region: Region) -> list[str]:
    ids: list[str] = region.table("requests/c0-1").to_pyarrow_table().column("id").to_pylist()
    return sorted(ids)


def flows(region: Region) -> None:
    """Every landed row comes, once."""
    until = time.monotonic() + SECONDS
    while len(stored(region)) < region.sent:
        assert time.monotonic() < until, region.log()
        time.sleep(0.5)
    assert stored(region) == sorted(f"r{n}" for n in range(region.sent))


# in every run, rows flow beside a rollout there (test_rollout_on_connect.py)
@pytest.mark.soak
def test_rows_flow_once_however_many_they_are_and_whatever_becomes_of_the_agent(region: Region) -> None:
    """Few rows go through the agent, many are files of Spark's; it dies on either side of the commit."""
    fired = region.home / "crash" / "fired"
    region.follow()
    for deaths, (rows, point) in enumerate(((2, "before-commit-live"), (SMALL_ROWS + 9, "after-commit-live")), 1):
        (region.home / "crash" / point).touch()
        region.produce(rows)
        until = time.monotonic() + SECONDS
        while len(list(fired.iterdir())) < deaths:
            assert time.monotonic() < until, region.log()
            time.sleep(0.2)
        region.follow()
        region.produce(1)  # behind the others: what the next agent did again would be seen
        flows(region)
    assert has_no_jvm(region)
    names = region.objects("requests/c0-1")
    assert any("/attempt-" in name for name in names)
    assert not any("/attempt-" in name and "_delta_log" in name for name in names)


def small_files_are_put_together(region: Region) -> None:
    """And keep their rows."""
    files, rows = (len(region.table("per_day/c0-1").file_uris()), region.table("per_day/c0-1").to_pyarrow_table())
    maintained = region.console("maintain", "--region", "us", "--small-files", "2")
    assert "per_day: compacted: day=2026-11-01: 2 files to 1 in version" in maintained, maintained
    kept = region.table("per_day/c0-1")
    assert len(kept.file_uris()) == files - 1
    order = [("day", "ascending"), ("requests", "ascending")]
    assert kept.to_pyarrow_table().sort_by(order) == rows.sort_by(order)
    assert has_no_jvm(region)


def test_copies_sinks_and_compaction_run(region: Region) -> None:
    assert "Spark 4.2.0" in region.attempt("doctor").stdout
    region.console("copy", "all_days", "--region", "us")
    days = [{"day": "2026-11-01", "requests": 2}, {"day": "2026-11-02", "requests": 2}]
    assert asked(region, "query", "SELECT * FROM all_days ORDER BY day") == days
    region.console("sink", "dump", "--region", "us")
    (dump,) = [name for name in region.objects("exports/dump") if "part-" in name]
    lines = region.text(dump.removeprefix(f"{region.warehouse.partition('//')[2].partition('/')[2]}/")).splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == [f"r{n}" for n in range(6)]
    small_files_are_put_together(region)


def test_a_server_that_does_not_answer_is_unreachable_and_named(cut_off: Region) -> None:
    done = cut_off.attempt("query", "--region", "us", "SELECT count(*) AS n FROM requests")
    assert done.returncode == 5, done.stdout + done.stderr
    assert f"{cut_off.spark['remote']}: no Spark Connect server answers" in done.stderr
