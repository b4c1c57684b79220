"""The region's own tables in a bucket: what two agents see of them, one of which no longer holds the lease. No Java."""

import pytest
from deltalake import DeltaTable

from console.agent import bucket_lock
from console.agent.bucket_lock import BucketLock
from console.agent.cleanup.hold_store import HoldStore
from console.agent.errors import LeaseLost
from console.agent.lease.fence import EPOCHS
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import log
from console.agent.store.ops import Ops
from console.errors import Conflict
from console.model.event import Ended, Entered, Logged
from console.model.held_release import HeldRelease
from console.model.incident import SparkBack
from console.model.live import Release
from tests.objects.holders import agent
from tests.objects.proxy import Fate, Proxy

pytestmark = pytest.mark.s3


def release(name: str) -> Release:
    return Release(id=name, pipeline="web", digest="digest", tables=(), feeds=())


def test_releases_and_rollouts_in_a_bucket_are_those_of_a_disk(warehouse: ObjectPath, proxy: Proxy) -> None:
    own = agent(warehouse, proxy)
    for name in ("r1", "r2", "r3"):
        own.releases.propose(release(name), f"web-{name[1:]}", "ada", "laptop")
    own.releases.swap("", "r1", "ada", "laptop")
    own.releases.swap("r1", "r2", "ada", "laptop")
    assert own.states() == {"r1": "previous", "r2": "live", "r3": "preview"}
    with pytest.raises(Conflict, match="r2 is live, not r1: promoted by ada from laptop at "):
        own.releases.swap("r1", "r3", "eve", "desk")
    own.releases.mark("r1", "retired")
    own.releases.drop("r1")
    own.releases.drop("r1")
    assert own.states() == {"r2": "live", "r3": "preview"}
    events = (Entered("preparing"), Logged("spark is back", "info", SparkBack(step="parse", seconds=3.0)))
    for seq, event in enumerate(events, 1):
        own.rollouts.append("web-1", seq, event)
    assert tuple(recorded.event for recorded in own.rollouts.newest()) == events
    assert tuple(recorded.event for recorded in own.rollouts.events("web-1", after=1)) == events[1:]


def test_what_a_former_holder_still_wants_to_write_is_refused_and_not_read_by_its_successor(
    warehouse: ObjectPath, proxy: Proxy
) -> None:
    former = agent(warehouse, proxy)
    for name in ("r1", "r2"):
        former.releases.propose(release(name), "web-1", "ada", "laptop")
    former.rollouts.append("web-1", 1, Entered("preparing"))
    former.releases.swap("", "r1", "ada", "laptop")
    HoldStore(warehouse, "web").put(HeldRelease(release="r1", live="r2", at=1.0, due=2.0, by="ada"))
    successor = agent(warehouse, proxy)
    seen = successor.states(), successor.rollouts.newest(), HoldStore(warehouse, "web").all()
    former.acts()  # it knows of nothing, and its last renewal was just now
    for write in (
        lambda: former.releases.swap("r1", "r2", "ada", "laptop"),
        lambda: former.releases.propose(release("r9"), "web-9", "ada", "laptop"),
        lambda: former.rollouts.append("web-1", 2, Entered("backfilling")),
    ):
        with pytest.raises(LeaseLost, match="the lease passed to"):
            write()
    with pytest.raises(LeaseLost):  # known to be lost by now, which is all that guards a small file
        HoldStore(warehouse, "web").forget("r1")
    successor.acts()
    assert (successor.states(), successor.rollouts.newest(), HoldStore(warehouse, "web").all()) == seen
    assert successor.releases.swap("r1", "r2", "eve", "desk") > 0


def test_a_successor_owns_every_log_that_an_agent_writes_before_it_reads_one(
    warehouse: ObjectPath, proxy: Proxy
) -> None:
    former = agent(warehouse, proxy)
    former.releases.propose(release("r1"), "web-1", "ada", "laptop")
    Ops(warehouse / "_console" / "web").store_decision(former.rollouts.append("web-1", 1, Ended("discarded", "ada")))
    successor = agent(warehouse, proxy)
    epochs = {
        name: DeltaTable(str(warehouse / "_console" / "web" / name)).transaction_version(EPOCHS)
        for name in ("releases", "rollouts", "ops")
    }
    assert epochs == dict.fromkeys(epochs, successor.tenure.lease.epoch)
    assert successor.tenure.lease.epoch == 2


def test_a_promotion_whose_answer_is_lost_counts_once(warehouse: ObjectPath, proxy: Proxy) -> None:
    own = agent(warehouse, proxy)
    for name in ("r1", "r2"):
        own.releases.propose(release(name), "web-1", "ada", "laptop")
    own.releases.swap("", "r1", "ada", "laptop")
    before, lost = log.latest_version(str(own.releases.path)), list[str]()

    def rule(method: str, path: str) -> Fate:
        if method == "PUT" and "releases/_delta_log/" in path and path.endswith(".json"):
            lost.append(path)
            return "lose answer" if len(lost) == 1 else "pass"
        return "pass"

    proxy.rule = rule
    version = own.releases.swap("r1", "r2", "ada", "laptop")
    proxy.heal()
    assert lost
    assert (version, log.latest_version(str(own.releases.path))) == (before + 1, before + 1)
    assert own.states() == {"r1": "previous", "r2": "live"}


def test_a_row_keeps_its_own_side_file_whatever_a_former_holder_puts(warehouse: ObjectPath, proxy: Proxy) -> None:
    former = agent(warehouse, proxy)
    former.rollouts.append("web-1", 1, Entered("preparing"))
    own = Logged("spark is back", "info", SparkBack(step="parse", seconds=3.0))
    successor = agent(warehouse, proxy)
    successor.rollouts.append("web-1", 2, own)
    former.acts()
    with pytest.raises(LeaseLost):
        former.rollouts.append("web-1", 2, Logged("other", "info", SparkBack(step="parse", seconds=9.0)))
    successor.acts()
    assert successor.rollouts.newest()[-1].event == own


def test_a_region_that_is_held_names_its_agent_and_one_that_is_left_is_free(
    warehouse: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_lock, "RELEASE_SECONDS", 0.5)
    monkeypatch.setattr(bucket_lock, "SILENT_SECONDS", 0.5)
    first = BucketLock(warehouse)
    first.take({"tool": "one"})
    assert (bucket_lock.shown(warehouse)["held"], bucket_lock.shown(warehouse)["tool"]) == (True, "one")
    with pytest.raises(Conflict, match="is held by another agent: pid"):
        BucketLock(warehouse).take({"tool": "two"})
    first.leave()
    assert not bucket_lock.shown(warehouse)["held"]
    second = BucketLock(warehouse)
    second.take({"tool": "two"})
    assert bucket_lock.force(warehouse)["tool"] == "two"
    second.leave()


def test_a_promotion_in_between_is_noticed_by_the_one_that_comes_later(
    warehouse: ObjectPath, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = agent(warehouse, proxy)
    for name in ("r1", "r2", "r3"):
        own.releases.propose(release(name), "web-1", "ada", "laptop")
    own.releases.swap("", "r1", "ada", "laptop")

    def meanwhile(name: str) -> None:
        monkeypatch.setattr("console.crash.point", lambda name: None)
        assert name == "before-swap"
        own.releases.swap("r1", "r3", "eve", "desk")

    monkeypatch.setattr("console.crash.point", meanwhile)
    with pytest.raises(Conflict, match="r3 is live, not r1: promoted by eve from desk"):
        own.releases.swap("r1", "r2", "ada", "laptop")
    assert own.states() == {"r1": "previous", "r2": "preview", "r3": "live"}
