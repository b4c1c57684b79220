"""A warehouse on a disk, and executors that must be on the host of that disk.

An executor elsewhere would write its files below the same path of another disk, and the driver would commit names of
files that no reader finds. A network file system may be the same for all; nothing of that was tried, so it is refused.
"""

import socket
from collections.abc import Iterable

from console.errors import RegionError
from console.model.spark_master import SparkMaster

_HINT = "a Spark of the warehouse's own host: local[…], or a standalone cluster on it (docs/clusters.md)"


def refuse_elsewhere(master: SparkMaster, warehouse: str) -> None:
    """raises  RegionError E_CLUSTER for a cluster that runs tasks on hosts of its own choice"""
    if master.kind in ("yarn", "kubernetes"):
        raise RegionError(
            f"spark {master.text}: its tasks run on other hosts, and {warehouse} is on this one's disk",
            hint=_HINT,
            code="E_CLUSTER",
        )


def check_hosts(hosts: Iterable[str], warehouse: str) -> None:
    """raises  RegionError E_CLUSTER if an executor is on another host than the warehouse's"""
    if away := sorted(host for host in set(hosts) if not is_here(host)):
        raise RegionError(
            f"executors run on {', '.join(away)[:200]}, and {warehouse} is on this host's disk",
            hint=_HINT,
            code="E_CLUSTER",
        )


def is_here(host: str) -> bool:
    """Whether a name or address is one of this machine: an address to which a socket can be bound."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return bool(found) and all(_binds(family, address[0]) for family, _, _, _, address in found)


def _binds(family: int, address: str | int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
