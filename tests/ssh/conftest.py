"""A remote host for each test that requests one; every test here needs root, sshd and network namespaces."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects.region import Region
from tests.objects.server import running
from tests.ssh.bucket import far_region
from tests.ssh.host import Host


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our own side: what this machine's user has in ~/.ssh and in the environment must not matter."""
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv("HOME", str(mine))
    monkeypatch.setenv("CONSOLE_HOME", str(mine / "console"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(mine))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return mine


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(tmp_path / "host") as host:
        yield host
        for pid in host.processes("console.agent"):
            os.kill(pid, 9)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """An S3 server of this machine, for regions in a bucket."""
    with running() as address:
        yield address


@pytest.fixture
def far(host: Host, server: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Region]:
    """A region in a bucket, served by an agent on that host."""
    name = f"far{abs(hash(request.node.nodeid)):x}"
    with far_region(host, server, tmp_path / "project-home", name) as region:
        yield region
