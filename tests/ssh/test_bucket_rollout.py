"""A region in a bucket with its agent on another host: rolled out, followed, read and taken back. Real consoles, sshd and Spark."""

from pathlib import Path

import pytest

from console import open_release
from console.release import OpenRelease
from tests.objects.region import CHANGED, FILES, Region, becomes
from tests.objects.server import OWNED, options, reader
from tests.ssh.bucket import NO_INSTANCE
from tests.ssh.host import Host

pytestmark = [pytest.mark.spark, pytest.mark.ssh, pytest.mark.s3]

# its landing table and one of rows
SMALL = {name: text for name, text in FILES.items() if "per_day" not in name and "count_days" not in name}
AGENT = "console.agent\0serve"


@pytest.fixture
def live(far: Region, server: str, monkeypatch: pytest.MonkeyPatch) -> OpenRelease:
    """The first release, opened by a program that may read the region's folder and no more."""
    far.write(SMALL)
    far.produce(60)
    far.console("apply", "--yes")
    account = reader(far.warehouse.rpartition(OWNED)[2])
    for name, value in {**options(server), **account, **NO_INSTANCE}.items():
        monkeypatch.setenv(name, value)
    return open_release("us", project=far.home / "project")


def only_there(far: Region, host: Host) -> None:
    """One agent and its Spark, on that host; and no table on its disk or on ours."""
    (agent,) = host.processes(AGENT)
    assert host.processes("SparkSubmit")
    assert far.running() == [agent]
    for folder in (host.folder, far.home):
        assert [path for path in Path(folder).rglob("_delta_log")] == []


def test_a_region_in_a_bucket_is_promoted_followed_and_read_with_its_agent_on_another_host(
    far: Region, host: Host, live: OpenRelease
) -> None:
    assert (live.id, live.arrow("requests").num_rows) == ("r1", 60)
    only_there(far, host)
    far.produce(40)
    becomes(far, 100)
    assert sorted(live.arrow("requests")["id"].to_pylist()) == sorted(f"r{n}" for n in range(100))


@pytest.mark.soak
def test_a_change_is_rolled_out_there_and_taken_back_while_a_program_reads(
    far: Region, host: Host, live: OpenRelease
) -> None:
    (agent,) = host.processes(AGENT)
    far.write({**SMALL, **CHANGED})
    far.console("apply", "--yes")
    far.produce(40)
    becomes(far, 100)
    becomes(far, 100, "previous")
    assert (live.id, live.arrow("requests").num_rows) == ("r1", 100)  # what is open stays readable, and is still fed
    promoted = live.refresh()
    states = promoted.arrow("requests", where="status IS NOT NULL")["status"].to_pylist()
    assert (promoted.id, len(states), set(states)) == ("r2", 100, set(range(200, 205)))
    assert "100" in far.console("query", "--region", "us", "SELECT count(*) AS n FROM requests")
    assert "r2" in far.console("status", "--region", "us")
    assert "all" in far.console("verify", "--rollout", "web-2")
    checks = far.attempt("doctor", "--output", "json").stdout
    assert checks.count('"bucket jars of us"') == 1  # what a bucket needs is asked of the host alone
    far.console("rollback", "--yes", "--region", "us")
    assert promoted.refresh().id == "r1"
    only_there(far, host)
    assert host.processes(AGENT) == [agent]
