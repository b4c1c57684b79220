"""A region in a bucket with its agent on another host: rolled out, followed, read and taken back. Real consoles, sshd and Spark."""

from pathlib import Path

import pytest

from console import open_release
from tests.objects.region import CHANGED, FILES, Region, becomes
from tests.objects.server import OWNED, options, reader
from tests.ssh.bucket import NO_INSTANCE
from tests.ssh.host import Host

pytestmark = [pytest.mark.spark, pytest.mark.ssh, pytest.mark.s3]


def read_only(region: Region, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this process is a program that may read the region's folder and no more."""
    account = reader(region.warehouse.rpartition(OWNED)[2])
    for name, value in {**options(server), **account, **NO_INSTANCE}.items():
        monkeypatch.setenv(name, value)


def test_a_region_in_a_bucket_is_rolled_out_followed_and_read_with_its_agent_on_another_host(
    far: Region, host: Host, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.write()
    far.produce(60)
    far.console("apply", "--yes")
    (agent,) = host.processes("serve")
    assert host.processes("SparkSubmit")
    read_only(far, server, monkeypatch)
    release = open_release("us", project=far.home / "project")
    assert (release.id, release.arrow("requests").num_rows) == ("r1", 60)

    far.produce(40)
    becomes(far, 100)
    far.write({**FILES, **CHANGED})
    far.console("apply", "--yes")
    far.produce(20)
    becomes(far, 120)
    becomes(far, 120, "previous")
    assert "120" in far.console("query", "--region", "us", "SELECT count(*) AS n FROM requests")
    assert "r2" in far.console("status", "--region", "us")
    assert release.arrow("requests").num_rows == 120  # what is open stays readable, and goes on being fed
    promoted = release.refresh()
    states = promoted.arrow("requests", where="status IS NOT NULL")["status"].to_pylist()
    assert (promoted.id, len(states), set(states)) == ("r2", 120, set(range(200, 205)))

    far.console("rollback", "--yes", "--region", "us")
    assert promoted.refresh().id == "r1"
    # one agent, there from the first to the last; nothing of the region is on that host's disk or on ours
    assert (host.processes("serve"), far.running()) == ([agent], [agent])
    for folder in (host.folder, far.home):
        assert [path for path in Path(folder).rglob("_delta_log")] == []
