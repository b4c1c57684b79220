"""A region in a bucket whose tasks run on two other hosts, which share nothing with the agent but the network and the bucket."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from console import paths
from tests.cluster.hosts import OtherHost, other_hosts
from tests.cluster.standalone import EXECUTORS, Events, Standalone
from tests.objects.proxy import between
from tests.objects.region import CHANGED, MANAGED, Region, becomes, environment
from tests.objects.server import BUCKET, options

pytestmark = [pytest.mark.cluster, pytest.mark.s3, pytest.mark.soak]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """near: our address for the hosts;  store: the bucket's address for the region, on all of its hosts"""

    near: str
    cluster: Standalone
    hosts: tuple[OtherHost, ...]
    store: str


@pytest.fixture
def elsewhere(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cluster").mkdir()
    with other_hosts(2, (paths.jars_dir(),)) as (near, hosts), between(server, near) as proxy:
        cluster = Standalone(tmp_path / "cluster", near)
        try:
            cluster.start(0)
            for host in hosts:
                cluster.add_worker(host)
            cluster.until_alive(len(hosts))
            yield Elsewhere(near=near, cluster=cluster, hosts=hosts, store=proxy.address)
        finally:
            cluster.stop()


@pytest.fixture
def region(elsewhere: Elsewhere, server: str, tmp_path: Path) -> Iterator[Region]:
    with tempfile.TemporaryDirectory(prefix="console-") as run:
        own = environment(tmp_path, options(elsewhere.store), Path(run))
        driver = {"spark.driver.host": elsewhere.near, "spark.driver.bindAddress": elsewhere.near}
        events = Events(tmp_path / "events")
        made = Region(home=tmp_path, warehouse=f"s3://{BUCKET}/elsewhere", store=options(server), environment=own)
        made.spark = {"master": elsewhere.cluster.url, "conf": {**EXECUTORS, **driver, **events.conf}}
        yield made
        made.end()


def test_a_change_is_built_by_executors_of_both_hosts_exported_and_taken_back(
    region: Region, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    region.write(MANAGED)
    region.console("apply", "--yes")
    for rows in (200, 100):
        region.console("ingest", str(region.lines(rows)), "--region", "us")
    becomes(region, 300)
    region.write({**MANAGED, **CHANGED})
    region.console("apply", "--yes")
    becomes(region, 300)
    assert "all" in region.console("verify", "--rollout", "web-2")
    region.console("sink", "days", "--region", "us")
    assert [name for name in region.objects("exports/days") if name.endswith(".json")]
    region.console("rollback", "--yes", "--region", "us")
    region.console("ingest", str(region.lines(50)), "--region", "us")
    becomes(region, 350)
    ran = Events(tmp_path / "events").ran()
    assert set(ran) == {worker.web for worker in elsewhere.cluster.workers}
    unseen = [str(tmp_path), str(paths.jars_dir())]
    for worker in elsewhere.cluster.workers:
        root = Path(f"/proc/{worker.process.pid}/root")
        assert [folder for folder in unseen if list((root / folder.removeprefix("/")).glob("*"))] == []
