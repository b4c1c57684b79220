"""The remote side without a network: its pipe, its request, and the example inventory. No server."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.drivers.ssh.remote import without_beats
from console.model.region import Ssh
from console.project import load
from tests.cli.conftest import FILES
from tests.walls.source import ROOT

pytestmark = pytest.mark.slow


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"x")), max_size=8), st.data())
def test_the_lines_arrive_without_the_beats_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    lines = [line for line in lines if line]
    stream = b"".join(line + b"\n" * data.draw(st.integers(1, 4)) for line in lines)
    stream = b"\n" * data.draw(st.integers(0, 3)) + stream
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    begins, got = True, b""
    for chunk in chunks:
        kept, begins = without_beats(chunk, begins)
        got += kept
    assert got == b"".join(line + b"\n" for line in lines)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"", "no request received"),
        (b"hello\n", "not JSON"),
        (b"{}\n", "do is missing"),
        (b'{"do": "shell", "region": "eu", "warehouse": "/x"}\n', "expected one of dial, survey"),
        (b'{"do": "dial", "region": "../x", "warehouse": "/x"}\n', "not a region's name"),
        (b'{"do": "dial", "region": "eu", "warehouse": "lake"}\n', "not an absolute path"),
        (b'{"do": "survey", "region": "eu", "warehouse": "/a/../etc"}\n', "not an absolute path"),
        (b'{"do": "survey", "region": "eu", "warehouse": "gs://x/y"}\n', "object store"),
        (b'{"do": "survey", "region": "eu", "warehouse": "s3://x/../y"}\n', "not a folder of a bucket"),
        (
            b'{"do": "look", "region": "eu", "warehouse": "/x", "credentials": [["PATH", "/y"]]}\n',
            "credentials: expected",
        ),
        (b'{"do": "survey", "region": "eu", "warehouse": "/no/such/lake"}\n', "no warehouse at"),
        (b"[" * 100_000 + b"\n", "not JSON"),
    ],
)
def test_a_request_that_is_none_is_answered_with_one_error(message: bytes, says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "console.drivers.ssh.remote"],
        input=message,
        capture_output=True,
        check=False,
        timeout=60,
    )
    (line,) = done.stdout.splitlines()
    assert says in json.loads(line)["error"]["message"]
    assert (done.returncode in (1, 5, 65), done.stderr) == (True, b"")


def test_the_example_inventory_is_one_of_four_kinds(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs" / "examples" / "ssh", tmp_path, dirs_exist_ok=True)
    for name, text in FILES.items():
        if name.startswith("plans/"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    us, ap, eu, sa = load(tmp_path).regions
    known = str(tmp_path.resolve() / "known_hosts")
    assert (sa.warehouse, sa.ineffective) == ("s3://acme-sa/web", ())
    assert sa.transport == Ssh(host="lake.sa.example.net", user="console", known_hosts=known)
    assert eu.transport == Ssh(host="lake.eu.example.net", user="console", known_hosts=known)
    assert us.transport == Ssh(
        host="10.20.0.7",
        port=2222,
        user="console",
        key="file:~/.ssh/console_us",
        known_hosts=known,
        jump="ops@gate.us.example.net",
    )
    assert ap.transport == Ssh(
        host="lake.ap.example.net",
        port=22,
        user="console",
        key="env:CONSOLE_AP_KEY",
        known_hosts=known,
        jump="",
        bootstrap=True,
    )


def test_only_the_ssh_rooms_know_the_ssh_library() -> None:
    code = "import console.main, console.drivers.ssh.remote, console.drivers.local, console.runner.fleet, sys; print('asyncssh' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    users = {
        path.relative_to(ROOT / "console").as_posix()
        for path in (ROOT / "console").rglob("*.py")
        if "import asyncssh" in path.read_text()
    }
    assert users == {"drivers/ssh/connection.py", "drivers/ssh/trust.py"}
