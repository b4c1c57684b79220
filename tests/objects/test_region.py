"""A region in a bucket through its whole life, with real consoles, agents and Spark; agents are killed where it hurts most."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.objects.proxy import Fate, Proxy
from tests.objects.region import CHANGED, SECONDS, Region, becomes, read_by_others, tidied

pytestmark = [pytest.mark.spark, pytest.mark.s3]


@pytest.fixture
def region(bare_region: Region) -> Region:
    bare_region.write()
    bare_region.produce(300)
    return bare_region


# in every run, a region that finds its credentials by its file in the inventory goes the same way: test_region_uses.py
@pytest.mark.soak
def test_a_region_lives_in_a_bucket_whose_credentials_are_in_its_environment(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    region.console("--headless", "--yes")
    becomes(region, 300)
    region.produce(200)
    becomes(region, 500)
    region.write(CHANGED)
    region.console("apply", "--yes")
    region.produce(100)
    becomes(region, 600)
    becomes(region, 600, "previous")
    assert "all" in region.console("verify", "--rollout", "web-2")
    read_by_others(region, monkeypatch)
    region.console("rollback", "--yes", "--region", "us")
    region.produce(50)
    becomes(region, 650)
    tidied(region)


TRIES = 10


@pytest.mark.soak
@pytest.mark.parametrize(
    "points", [("before-commit-history",), ("after-commit-history", "before-swap", "after-swap")], ids=" ".join
)
def test_an_agent_killed_here_is_succeeded_and_no_row_is_lost_or_doubled(
    region: Region, points: tuple[str, ...]
) -> None:
    """One rollout meets these points one after the other."""
    region.console("apply", "--yes")
    region.write(CHANGED)
    crashes = region.home / "crash"
    for point in points:
        (crashes / point).touch()
    # a console whose agent was killed waits for the next one; whether it ends well there or here is not what is asked
    for _ in range(TRIES):
        if region.attempt("apply", "--yes").returncode == 0:
            break
    assert sorted(path.name.partition(".")[0] for path in (crashes / "fired").iterdir()) == sorted(points)
    region.produce(100)
    region.console("apply", "--yes")
    becomes(region, region.sent)
    becomes(region, region.sent, "previous")
    assert "all" in region.console("verify", "--rollout", "web-2")


@pytest.mark.soak
def test_a_commit_whose_answer_is_lost_counts_once(region: Region, proxy: Proxy) -> None:
    """Each fourth put of a commit is carried out and never answered, whatever log it is for."""
    puts: list[str] = []

    def rule(method: str, path: str) -> Fate:
        if method == "PUT" and "/_delta_log/" in path and path.endswith(".json"):
            puts.append(path)
            return "lose answer" if len(puts) % 4 == 0 else "pass"
        return "pass"

    proxy.rule = rule
    region.console("apply", "--yes")
    for _ in range(3):
        region.produce(100)
        becomes(region, region.sent)
    assert len(puts) > 40
    proxy.heal()
    assert "all" in region.console("verify", "--rollout", "web-1")


@pytest.mark.soak
def test_an_agent_that_was_stopped_and_succeeded_commits_nothing_when_it_goes_on(region: Region) -> None:
    region.console("apply", "--yes")
    becomes(region, 300)
    (former,) = region.running()
    os.kill(former, signal.SIGSTOP)
    region.console("lock", "force", "--region", "us", "--yes")
    other = Path(region.environment["XDG_RUNTIME_DIR"]) / "2"  # of another host
    other.mkdir(mode=0o700)
    region.environment = {**region.environment, "XDG_RUNTIME_DIR": str(other)}
    region.produce(100)
    region.follow()
    becomes(region, 400)
    os.kill(former, signal.SIGCONT)
    region.produce(100)
    becomes(region, 500)
    until = time.monotonic() + SECONDS
    while former in region.running() and time.monotonic() < until:
        time.sleep(0.3)
    assert former not in region.running()
    assert "the lease passed to" in region.log()
    becomes(region, 500)
