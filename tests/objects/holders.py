"""Agents of one region in a bucket as they act one after the other: each holds the lease, or held it."""

import threading
from dataclasses import dataclass

from console.agent.bucket_lock import take_over
from console.agent.lease.lease import Lease
from console.agent.object_store.object_path import ObjectPath
from console.agent.object_store.s3 import ClientRetries, S3Access, S3Objects
from console.agent.store import commits
from console.agent.store.ledger import Releases, Rollouts
from tests.objects.proxy import Proxy
from tests.objects.server import BUCKET


class StoppedClock:
    """Of a process that stood still: however late it is, its last renewal was just now."""

    def now(self) -> float:
        return 0.0

    def elapsed(self) -> float:
        return 0.0

    def wait(self, halt: threading.Event, seconds: float) -> None:
        raise AssertionError("nobody waits here")


@dataclass(frozen=True)
class Agent:
    """One that holds, or held, the lease; its commits are this process's after `acts`."""

    warehouse: ObjectPath
    tenure: commits.Tenure

    def acts(self) -> "Agent":
        commits.hold(self.tenure)
        return self

    @property
    def releases(self) -> Releases:
        return Releases(self.warehouse, "web")

    @property
    def rollouts(self) -> Rollouts:
        return Rollouts(self.warehouse, "web")

    def states(self) -> dict[str, str]:
        return {stored.row.id: stored.row.state for stored in self.releases.all()}


def agent(warehouse: ObjectPath, proxy: Proxy) -> Agent:
    """The next holder, at once; it has taken every log over."""
    access = S3Access(endpoint=proxy.address, region="us-east-1", key_id="test", secret="test")
    lease = Lease(S3Objects(BUCKET, warehouse.key, access), {}, clock=StoppedClock())
    lease.take(force=True)
    objects = S3Objects(BUCKET, warehouse.key, access, ClientRetries.SOME)
    found = Agent(warehouse, commits.Tenure(objects=objects, lease=lease)).acts()
    take_over(warehouse)
    return found
