"""A region in a bucket whose agent is on another host: what needs no Spark there."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.drivers.ssh import remote
from console.drivers.ssh.connection import Connection
from console.drivers.ssh.driver import SshDriver
from console.model import codec
from console.model.region import Region as Named
from console.project import load
from tests.objects.region import Region
from tests.ssh.bucket import KEYS, transport
from tests.ssh.host import QUICK, Host, sh

pytestmark = [pytest.mark.ssh, pytest.mark.s3]


def doctor(region: Region) -> dict[str, dict[str, Any]]:
    """What is found of the region, by name."""
    checks = json.loads(region.attempt("doctor", "--output", "json").stdout)["checks"]
    return {check["name"].removesuffix(" of us"): check for check in checks if check["name"].endswith(" us")}


def rows_planned(region: Region) -> int:
    return int(json.loads(region.console("plan", "--output", "json"))["plans"][0]["price"]["rows"])


def keys_profiled(region: Region) -> list[str]:
    listed = json.loads(region.console("profile", "landing", "--region", "us", "--output", "json"))
    return [key["key"] for key in listed["keys"]]


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
    assert rows_planned(far) == 30
    found = doctor(far)
    assert [name for name, check in found.items() if check["ok"] is False] == []
    answers = rf"{far.warehouse} answers at http://{host.near}:\d+; its lease is free"
    assert re.fullmatch(answers, found["warehouse"]["detail"])
    assert ("bucket jars" in found, "none runs" in found["agent"]["detail"]) == (True, True)

    for name in ("LAKE_KEY", "LAKE_SECRET"):
        monkeypatch.setenv(name, far.environment[name])
    driver = SshDriver(load(far.home / "project").region("us"), timeouts=QUICK)
    await driver.start_agent()
    (agent,) = host.processes("serve")
    assert f"process {agent}" in doctor(far)["agent"]["detail"]
    assert f"us: held by pid {agent} on" in far.console("lock", "show", "--region", "us")
    assert keys_profiled(far) == ["status"]
    nothing_is_told(far, host)
    await driver.stop()
    await driver.close()
    assert "us: free; last held by" in far.console("lock", "show", "--region", "us")


def test_a_host_with_a_profile_of_its_own_needs_no_secrets(far: Region, host: Host) -> None:
    far.more = transport(host)
    far.write()
    far.produce(30)
    refused = doctor(far)["warehouse"]
    assert (refused["ok"], far.warehouse.removeprefix("s3://") in refused["detail"]) == (False, True)
    account = "".join(f"{name.lower()} = {far.store[name]}\n" for name in KEYS)
    profiles = host.folder / "home" / ".aws" / "credentials"
    profiles.parent.mkdir()
    profiles.write_text(f"[default]\n{account}")
    assert (rows_planned(far), keys_profiled(far)) == (30, ["status"])
    assert "its lease is free" in doctor(far)["warehouse"]["detail"]
    # nothing opens the bucket to our side, which is told where the lease can be seen
    done = far.attempt("lock", "show", "--region", "us")
    assert done.returncode == 5, done.stderr
    assert f"on {host.address}: console lock show --warehouse {far.warehouse}" in done.stderr


async def test_a_key_that_is_limited_to_a_folder_of_a_bucket_reaches_no_other(far: Region, host: Host) -> None:
    keys = host.folder / "authorized_keys"
    keys.write_text(f'command="console agent remote --only {far.warehouse}",restrict {keys.read_text()}')
    account = tuple((name, far.store[name]) for name in KEYS)
    ask = remote.Request(do="survey", region="us", warehouse=far.warehouse, pipeline="web", credentials=account)
    assert await answer(host.region(), ask) == ""
    assert await answer(host.region(), replace(ask, warehouse=far.warehouse.replace("s3:", "s3a:") + "/")) == ""
    for place, code in {
        f"{far.warehouse}/deeper": "E_ONLY",
        far.warehouse.rpartition("/")[0]: "E_ONLY",
        str(host.folder / "lake"): "E_ONLY",
        f"{far.warehouse}/../other": "DataError",
        f"{far.warehouse}/%2e%2e/other": "DataError",
        f"{far.warehouse}//other": "E_STORE",
        "gs://lake/us": "E_STORE",
    }.items():
        assert await answer(host.region(), replace(ask, warehouse=place)) == code, place
    # a credential is a variable of a process there: it is nothing else
    for name in ("LD_PRELOAD", "PYTHONPATH", "AWS_ENDPOINT_URL"):
        assert await answer(host.region(), replace(ask, credentials=((name, "x"),))) == "DataError", name


async def answer(region: Named, request: remote.Request) -> str:
    """The code of the host's error, else its type; "" where it answers."""
    connection = Connection(region, QUICK)
    try:
        channel = await connection.run(" ".join(remote.COMMAND))
        channel.write(codec.dumps(request).encode() + b"\n")
        found = json.loads(await channel.line(1 << 20, 60)).get("error")
        channel.close()
        await channel.wait_closed()
    finally:
        await connection.close()
    return (found["code"] or found["type"]) if found else ""
