"""Hosts of their own for Spark's workers, on one network with this machine: none sees our /tmp, nor any folder that is hidden."""

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ssh.host import sh

_SERIAL = itertools.count()
_HIDE = 'while [ "$1" != -- ]; do mount -t tmpfs tmpfs "$1" || exit 1; shift; done; shift; exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherHost:
    """space: its network;  address: on the network that it shares with us;  hidden: folders of ours that are empty there"""

    space: str
    address: str
    hidden: tuple[Path, ...]

    @property
    def enter(self) -> tuple[str, ...]:
        """In front of a command that is to run there."""
        own_disk = (
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            _HIDE,
            "sh",
            *map(str, self.hidden),
            "--",
        )
        return ("ip", "netns", "exec", self.space, *own_disk)


@contextmanager
def other_hosts(count: int, hide: Sequence[Path]) -> Iterator[tuple[str, tuple[OtherHost, ...]]]:
    """Our address on the network that we share with so many hosts (at most 5), and these."""
    number = os.getpid() % 4000 * 4 + next(_SERIAL) % 4
    bridge, first = f"cb{number}", number * 8 % 65_536
    third, fourth = divmod(first, 256)
    network = f"10.{230 + number * 8 // 65_536}.{third}"
    near = f"{network}.{fourth + 1}"
    hosts = tuple(
        OtherHost(space=f"worker{number}-{n}", address=f"{network}.{fourth + 2 + n}", hidden=(Path("/tmp"), *hide))
        for n in range(count)
    )
    sh("ip", "link", "add", bridge, "type", "bridge")
    try:
        sh("ip", "addr", "add", f"{near}/29", "dev", bridge)
        sh("ip", "link", "set", bridge, "up")
        for n, host in enumerate(hosts):
            sh("ip", "netns", "add", host.space)
            device = f"cw{number}-{n}"
            sh("ip", "link", "add", device, "type", "veth", "peer", "name", "far", "netns", host.space)
            sh("ip", "link", "set", device, "master", bridge, "up")
            for words in (f"addr add {host.address}/29 dev far", "link set far up", "link set lo up"):
                sh("ip", "-n", host.space, *words.split())
        yield near, hosts
    finally:
        known = sh("ip", "netns", "list").split()
        for host in hosts:
            if host.space in known:
                sh("ip", "netns", "del", host.space)
        sh("ip", "link", "del", bridge)
