"""`_console/<pipeline>/previews/<name>/`: the sandboxes of a pipeline, each with a log of its own.

    preview.json   the request (`model.sandbox.SandboxOrder`); a folder without it is not a sandbox
    rollouts/      its plan and its events, in a table like that of rollouts

They are stored beside the tables of 0.1.0, which does not open this folder.
"""

import json
import shutil
from pathlib import Path

from console.agent.errors import LogDamaged
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits, small_files
from console.agent.store.ledger import Releases, Rollouts, plain_id
from console.errors import DataError
from console.model import codec
from console.model.plan import Plan
from console.model.sandbox import Sandbox, SandboxOrder
from console.model.sandbox_plan import described

_FOLDER, _ORDER = "previews", "preview.json"


class SandboxStore:
    """The sandboxes of one pipeline on disk. Read by a survey without a lock, written by the agent alone."""

    def __init__(self, warehouse: Path, pipeline: str) -> None:
        self._warehouse, self._pipeline = warehouse, pipeline
        self.path = warehouse / "_console" / pipeline / _FOLDER

    def orders(self) -> tuple[SandboxOrder, ...]:
        """All orders, oldest first, including those being dropped.

        raises  RegionError E_LOG_DAMAGED
        """
        orders = []
        for place in self.path.glob(f"*/{_ORDER}"):
            try:
                data = codec.loads(place.read_text())
                orders.append(codec.decode(SandboxOrder, data["order"]))
            except FileNotFoundError:  # dropped in the meantime
                continue
            except (ValueError, KeyError, TypeError, DataError):
                raise LogDamaged(f"{place} cannot be read", hint="console doctor") from None
        return tuple(sorted(orders, key=lambda order: (order.at, order.name)))

    def write(self, order: SandboxOrder) -> None:
        """Store the request; from now on the sandbox exists, even if the agent dies."""
        data = {"format_version": 1, "order": codec.encode(order)}
        small_files.replace(self._folder(order.name) / _ORDER, json.dumps(data, allow_nan=False))

    def forget(self, name: str) -> None:
        """Delete a sandbox's folder, once its versions are gone."""
        (self._folder(name) / _ORDER).unlink(missing_ok=True)  # first: without it the folder is not a sandbox
        self.sweep()

    def sweep(self) -> None:
        """Delete leftovers of a dead agent: folders of sandboxes that were not stored yet, or were being deleted."""
        for folder in self.path.glob("*") if self.path.is_dir() else ():
            if not folder.is_dir() or (folder / _ORDER).exists():
                continue
            if isinstance(folder, ObjectPath):
                folder.delete_below(commits.check_tenure)
            else:
                shutil.rmtree(folder)

    def log(self, name: str) -> Rollouts:
        """The table of its plan and its events."""
        return Rollouts(self._warehouse, f"{self._pipeline}/{_FOLDER}/{plain_id(name)}")

    def plan(self, name: str) -> Plan | None:
        log = self.log(name)
        return log.plan(log.latest())

    def copies(self, name: str) -> Path:
        """The folder for outputs of its copies, one subfolder for each of their tables."""
        return self._folder(name) / "copies"

    def paths(self) -> frozenset[str]:
        """Paths of all versions that sandboxes name: live's, and their own."""
        plans = [self.plan(order.name) for order in self.orders() if not order.dropping]
        return frozenset(state.version.path for plan in plans if plan for state in plan.release.tables)

    def listed(self, releases: Releases) -> tuple[Sandbox, ...]:
        """The current state of all sandboxes, from the logs alone. releases: those of the pipeline"""
        shown = []
        for order in self.orders():
            log = self.log(order.name)
            plan = log.plan(log.latest())
            if plan is not None and not order.dropping:
                shown.append(described(order, plan, log.status(), named_paths(releases)))
        return tuple(shown)

    def _folder(self, name: str) -> Path:
        return self.path / plain_id(name)


def named_paths(releases: Releases) -> frozenset[str]:
    """Paths of the versions that the region's releases name."""
    return frozenset(state.version.path for stored in releases.all() for state in stored.release.tables)
