"""The region's lock for a warehouse in a bucket: a lease that a thread renews, and every log taken over before anything is read."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from console.agent.errors import LeaseLost
from console.agent.lease.lease import Lease, LeaseTimes, holder
from console.agent.object_store.object_path import ObjectPath
from console.agent.object_store.s3 import ClientRetries, S3Access, S3Objects
from console.agent.store import commits, log
from console.agent.store.ledger import Releases
from console.errors import RegionError
from console.model.spark_master import spark_master
from console.paths import version_path

RELEASE_SECONDS = 15.0  # with an agent that is ending
SILENT_SECONDS = 45.0  # longer than a killed one keeps the lease (`LeaseTimes.term`)
TAKEN_AT_ONCE = 8
_LEDGERS = ("releases", "rollouts", "ops", "comparison", "quarantine")


class BucketLock:
    """lost  why this process is not the region's agent any more; None while it is"""

    def __init__(self, warehouse: ObjectPath, times: LeaseTimes | None = None) -> None:
        self._warehouse = warehouse
        self._times = times or LeaseTimes()
        self._halt = threading.Event()
        self.fd = -1  # no child holds it: a JVM commits nothing in a bucket
        self.lost: LeaseLost | None = None
        self._lease: Lease | None = None

    def take(self, facts: dict[str, Any]) -> None:
        """Become the region's agent. Afterwards no commit of a former one can follow those that this process has read.

        facts   stored beside the holder's pid, host and time
        raises  Conflict E_LOCK naming the holder; StoreUnreachable; RegionError E_STORE for a store that does not arbitrate
        """
        lease = Lease(_objects(self._warehouse), facts, times=self._times)
        lease.take(wait=RELEASE_SECONDS, silent=SILENT_SECONDS)
        self._lease = lease
        threading.Thread(target=lease.keep, args=(self._halt, self._lost), name="lease", daemon=True).start()
        objects = S3Objects(self._warehouse.bucket, self._warehouse.key, S3Access.of(os.environ), ClientRetries.SOME)
        commits.hold(commits.Tenure(objects=objects, lease=lease))
        take_over(self._warehouse)

    def leave(self) -> None:
        """The next agent need not wait."""
        self._halt.set()
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _lost(self, why: LeaseLost) -> None:
        self.lost = why


def shown(warehouse: ObjectPath) -> dict[str, Any]:
    """The holder of the newest epoch; `held` says only that it has not released it, since a dead one cannot."""
    found = holder(_objects(warehouse))
    known = {name: found.facts.get(name) for name in ("pid", "host", "since", "tool")}
    return {"held": bool(found.epoch) and not found.released, "epoch": found.epoch, **known}


def force(warehouse: ObjectPath) -> dict[str, Any]:
    """Take the lease from its holder, which commits nothing from now on, and release it at once. Returns it as it was."""
    found = shown(warehouse)
    if found["held"]:
        lease = Lease(_objects(warehouse), {})
        lease.take(force=True)
        lease.release()
    return found


def _objects(warehouse: ObjectPath) -> S3Objects:
    return S3Objects(warehouse.bucket, warehouse.key, S3Access.of(os.environ))


def take_over(warehouse: ObjectPath) -> None:
    """Take over every log of the region that an agent writes."""
    for folder in (warehouse / "_console").glob("*/releases"):
        pipeline = folder.parent
        own = [str(pipeline / name) for name in _LEDGERS]
        own += map(str, pipeline.glob("previews/*/rollouts"))
        _take_over(own)
        states = {
            state.version.path: state
            for stored in Releases(warehouse, pipeline.name).all()
            for state in stored.release.tables
            if state.version.path and (state.table.kind != "landing" or state.table.managed)
        }
        _take_over([version_path(warehouse, path) for path in states])


def _take_over(tables: list[str]) -> None:
    with ThreadPoolExecutor(TAKEN_AT_ONCE) as pool:
        list(pool.map(commits.own, [table for table in tables if log.exists(table)]))


def refuse_untried(master: str) -> None:
    """raises  RegionError E_STORE for a Spark that was never run with a bucket"""
    if not spark_master(master).reaches_buckets:
        raise RegionError(
            f"spark {master}: a region in a bucket has a local Spark or a standalone cluster so far",
            hint="spark: {master: local[2]}, or {master: spark://HOST:PORT} (docs/clusters.md)",
            code="E_STORE",
        )
