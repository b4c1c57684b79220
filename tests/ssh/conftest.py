"""A remote host for each test that requests one; every test here needs root, sshd and network namespaces."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

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
