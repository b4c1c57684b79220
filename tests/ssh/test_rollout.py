"""A whole rollout with real Spark in a region that only SSH reaches, cut once in the middle of its history."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from console.agent.store.ledger import Rollouts
from console.drivers.ssh.driver import SshDriver
from tests.faults.outside import when
from tests.faults.world import CASE, PIPELINE, Operator, World, before_long, verdict
from tests.ssh.host import QUICK, Host, sh
from tests.ssh.relay import Relay

pytestmark = [pytest.mark.spark, pytest.mark.ssh]
CANARY = "canary-71c0"
SECRETS = {"spark.hadoop.fs.s3a.secret.key": CANARY, "spark.my.catalog": f"jdbc:postgresql://ops:{CANARY}@db:5432/app"}
# 127.0.0.1 as the kernel writes it, alone and inside an IPv6 address, and ::1
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


class FarWorld(World):
    """A region under fire on a host behind SSH: consoles and producer reach it through a relay and in no other way."""

    def __init__(self, host: Host, relay: Relay) -> None:
        super().__init__(host.folder / "world", rows=450)
        (self.root / "hosts").write_text((host.folder / "known_hosts").read_text())
        ssh = {"host": "127.0.0.1", "port": relay.port, "user": "root", "key": f"file:{host.folder}/key"}
        place = self.root / "regions" / "eu.yaml"
        text = place.read_text().replace("warehouse: warehouse", f"warehouse: {self.warehouse}")
        text = text.replace('"conf": {', f'"conf": {json.dumps(SECRETS)[:-1]}, ')
        place.write_text(f"{text}transport: {json.dumps({'ssh': {**ssh, 'known_hosts': 'hosts'}})}\n")
        self.install(PIPELINE, CASE / "before")
        self._driver = SshDriver(self.region, timeouts=QUICK)


@pytest_asyncio.fixture
async def relay(host: Host) -> AsyncIterator[Relay]:
    async with Relay(host) as relay:
        yield relay


@pytest_asyncio.fixture
async def world(host: Host, relay: Relay) -> AsyncIterator[FarWorld]:
    world = FarWorld(host, relay)
    try:
        yield world
    finally:
        relay.mend()
        await world.ended()


def see_the_host(host: Host, jvm: int) -> None:
    """With Spark at work: no secret is told to whoever lists processes, and nothing of Spark's listens to other hosts."""
    pids = sh("ip", "netns", "pids", host.space).split()
    lines = b"".join(path.read_bytes() for pid in pids if (path := Path(f"/proc/{pid}/cmdline")).exists())
    assert (b"SparkSubmit" in lines, CANARY.encode() in lines) == (True, False)
    sockets = "".join(Path(f"/proc/{jvm}/net/{kind}").read_text() for kind in ("tcp", "tcp6")).splitlines()
    listening = {place for _, place, _, state, *_ in map(str.split, sockets) if state == "0A"}
    ours = {place for place in listening if not place.endswith(":0016")}  # all but sshd's own
    assert ours
    assert {place.partition(":")[0] for place in ours} <= LOOPBACK


async def until_told(process: subprocess.Popen[str], what: str) -> str:
    """The lines of a console up to the first that has this."""
    assert process.stdout
    lines = ""
    while what not in lines:
        line = await before_long(process, process.stdout.readline)
        assert line, f"it ended and never told {what}: {lines}"
        lines += line
    return lines


async def test_a_rollout_over_ssh_that_is_cut_in_the_middle_of_its_history_ends_whole_and_goes_back(
    world: FarWorld, host: Host, home: Path, relay: Relay
) -> None:
    ada = Operator(world, "ada")
    code, output = await ada.run("apply", "--regions", "eu", "--yes")
    assert code == 0, output
    pid = world.agent()
    see_the_host(host, world.jvm())
    first = (await world.driver.state(PIPELINE)).live
    world.write(every=1.0)
    world.install(PIPELINE, CASE / "after")
    world.at_most(200)
    code, output = await ada.run("plan", "--out", str(world.base / "eu.plan"))
    assert code == 0, output

    apply = ada.start("apply", str(world.base / "eu.plan"), "--output", "json")
    begun = await when(world, lambda status: status.state == "backfilling" and any(step.batch for step in status.steps))
    relay.cut(shut=True)
    log = Rollouts(world.warehouse, PIPELINE)
    carried = len(log.events(begun.rollout))
    async with asyncio.timeout(300):  # the agent goes on alone
        while len(log.events(begun.rollout)) < carried + 2:
            await asyncio.sleep(0.1)
    output = await until_told(
        apply, '"link":"unreachable"'
    )  # a quick region could be through before the console misses it
    relay.mend()
    rest, _ = await before_long(apply, apply.communicate)
    output += rest
    assert apply.returncode == 3, output  # at the gate, which waits for a person
    messages = [line for line in map(json.loads, output.splitlines()[:-2]) if line["type"] == "link"]
    assert [line["link"] for line in messages][-2:] == ["unreachable", "connected"], output
    assert world.agent() == pid

    code, output = await ada.run("promote", "--regions", "eu", "--yes")
    assert code == 0, output
    state = await world.driver.state(PIPELINE)
    assert (state.live != first, state.previous, state.status.rollout) == (True, first, begun.rollout)
    messages = await world.judged()
    assert verdict(messages, []) == {}
    code, output = await ada.run("rollback", "--regions", "eu", "--yes")
    assert code == 0, output
    assert (await world.driver.state(PIPELINE)).live == first
    messages = await world.judged(whole=True)
    assert (verdict(messages, []), messages["live"]["release"]) == ({}, first)
    assert messages["sent"] > 450, "nothing was sent meanwhile"
    files = [path for path in (*host.folder.rglob("*"), *home.rglob("*")) if path.is_file()]
    assert {path.name for path in files if CANARY.encode() in path.read_bytes()} == {"eu.yaml", "agent.json"}
