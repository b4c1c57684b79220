"""A region in a bucket whose agent is on another host: what needs no Spark there."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from console.drivers.prerequisites import Prerequisite
from console.drivers.ssh import remote
from console.drivers.ssh.connection import Connection
from console.drivers.ssh.driver import SshDriver
from console.drivers.survey import Sample
from console.model import codec
from console.project import load
from tests.objects.region import Region
from tests.ssh.bucket import KEYS, transport
from tests.ssh.host import QUICK, Host, sh

pytestmark = [pytest.mark.ssh, pytest.mark.s3]
SAMPLE = Sample(table="landing", column="payload", time="ts", bytes=1 << 20, seconds=60)


@asynccontextmanager
async def driven(region: Region, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SshDriver]:
    """The region as its file has it, in a process with what the file's references lead to and no credentials of its own."""
    for name, value in region.environment.items():
        if name.startswith(("AWS_", "LAKE_")):
            monkeypatch.setenv(name, value)
    driver = SshDriver(load(region.home / "project").region("us"), timeouts=QUICK)
    try:
        yield driver
    finally:
        await driver.close()


async def rows_and_keys(driver: SshDriver) -> tuple[int, list[str]]:
    """Of the landing table, by its log and by its data."""
    (landing,) = (await driver.survey("web", ["landing"])).stats
    return landing.rows, [key.key for key in (await driver.profile(SAMPLE)).keys]


async def looked(driver: SshDriver) -> dict[str, Prerequisite]:
    found = {each.name: each for each in await driver.look()}
    assert [each for each in found.values() if each.ok is False] == []
    return found


def nothing_is_told(region: Region, host: Host) -> None:
    """Neither secret nor token is on a command line there, or in a file of either side."""
    secret, token = (region.store[name].encode() for name in KEYS[1:])
    pids = sh("ip", "netns", "pids", host.space).split()
    lines = b"".join(path.read_bytes() for pid in pids if (path := Path(f"/proc/{pid}/cmdline")).exists())
    assert (b"console.agent" in lines, secret in lines, token in lines) == (True, False, False)
    files = [path for folder in (host.folder, region.home) for path in folder.rglob("*") if path.is_file()]
    assert "agent.json" in {path.name for path in files}
    assert {path.name for path in files if {word for word in (secret, token) if word in path.read_bytes()}} == {"token"}


async def test_credentials_that_are_looked_up_here_open_the_bucket_there(
    far: Region, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.write()
    far.produce(30)
    async with driven(far, monkeypatch) as driver:
        assert await rows_and_keys(driver) == (30, ["status"])
        await driver.start_agent()
        (agent,) = host.processes("console.agent\0serve")
        found = await looked(driver)
        answers = rf"{far.warehouse} answers at http://{host.near}:\d+; its lease is held by pid {agent} on .*"
        assert re.fullmatch(answers, found["warehouse"].detail)
        assert ("bucket jars" in found, found["agent"].detail.endswith(f"process {agent}")) == (True, True)
        assert f"us: held by pid {agent} on" in far.console("lock", "show", "--region", "us")
        nothing_is_told(far, host)
        await driver.stop()


async def test_a_host_with_a_profile_of_its_own_needs_no_secrets(
    far: Region, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.more = transport(host)
    far.write()
    far.produce(30)
    profiles = host.folder / "home" / ".aws" / "credentials"
    profiles.parent.mkdir()
    profiles.write_text("".join(["[default]\n", *(f"{name.lower()} = {far.store[name]}\n" for name in KEYS)]))
    async with driven(far, monkeypatch) as driver:
        assert await rows_and_keys(driver) == (30, ["status"])
        found = await looked(driver)
        assert ("its lease is free" in found["warehouse"].detail, "none runs" in found["agent"].detail) == (True, True)
    # nothing opens the bucket to our side, which is told where the lease can be seen
    done = far.attempt("lock", "show", "--region", "us")
    assert done.returncode == 5, done.stderr
    assert f"on {host.address}: console lock show --warehouse {far.warehouse}" in done.stderr


async def test_a_key_that_is_limited_to_a_folder_of_a_bucket_reaches_no_other(far: Region, host: Host) -> None:
    keys = host.folder / "authorized_keys"
    keys.write_text(f'command="console agent remote --only {far.warehouse}",restrict {keys.read_text()}')
    account = tuple((name, far.store[name]) for name in KEYS)
    ask = remote.Request(do="survey", region="us", warehouse=far.warehouse, pipeline="web", credentials=account)
    connection = Connection(host.region(), QUICK)
    try:
        assert await answer(connection, replace(ask, warehouse=far.warehouse.replace("s3:", "s3a:") + "/")) == ""
        for place, code in {
            f"{far.warehouse}/deeper": "E_ONLY",
            str(host.folder / "lake"): "E_ONLY",
            f"{far.warehouse}/../other": "DataError",
            f"{far.warehouse}/%2e%2e/other": "DataError",
            f"{far.warehouse}//other": "E_STORE",
        }.items():
            assert await answer(connection, replace(ask, warehouse=place)) == code, place
        # a credential is a variable of a process there: it is nothing else
        for name in ("LD_PRELOAD", "AWS_ENDPOINT_URL"):
            assert await answer(connection, replace(ask, credentials=((name, "x"),))) == "DataError", name
    finally:
        await connection.close()


async def answer(connection: Connection, request: remote.Request) -> str:
    """The code of the host's error, else its type; "" where it answers."""
    channel = await connection.run(" ".join(remote.COMMAND))
    channel.write(codec.dumps(request).encode() + b"\n")
    found = json.loads(await channel.line(1 << 20, 60)).get("error")
    channel.close()
    await channel.wait_closed()
    return (found["code"] or found["type"]) if found else ""
