"""Over a link that is slow, loses, goes one way only or breaks in the middle of a word, every command counts once (F11)."""

import asyncio
import json
import os
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from console.drivers.ssh import remote
from console.drivers.ssh.connection import Channel
from console.drivers.ssh.driver import SshDriver
from console.errors import Unreachable
from console.model import codec
from tests.ssh.host import QUICK, Host
from tests.ssh.relay import Relay, Way
from tests.ssh.test_links import KEEPALIVE, gone, landed, landing

pytestmark = pytest.mark.ssh
PATIENT = replace(QUICK, beat=20.0)  # no keep-alive comes between


def batches(host: Host) -> list[str]:
    """The batch of each commit to landing, in order."""
    notes = (commit.get("userMetadata") for commit in DeltaTable(str(host.folder / "lake" / "landing")).history())
    return [json.loads(note)["batch"] for note in notes if note][::-1]


def asked(number: int, batch: str, *ids: str) -> bytes:
    """One request as it stands on the wire, to be said as often as one likes."""
    params = {"pipeline": "web", "table": "landing", "batch": batch, "lines": [json.dumps({"id": id}) for id in ids]}
    request = {"jsonrpc": "2.0", "id": number, "method": "ingest", "params": params}
    return json.dumps(request).encode() + b"\n"


async def answered(channel: Channel, count: int) -> list[dict[str, object]]:
    """The next answers, in whatever order they come."""
    lines, rest = [], b""
    async with asyncio.timeout(120):
        while len(lines) < count:
            *whole, rest = (rest + await channel.read(1 << 16)).split(b"\n")
            lines += [json.loads(line) for line in whole]
    return lines


async def again(driver: SshDriver, batch: str, lines: list[str]) -> bool:
    """Send a batch until it is answered: whether it had been stored before."""
    async with asyncio.timeout(120):
        while True:
            try:
                return bool((await driver.ingest("web", "landing", batch, lines))["already"])
            except Unreachable:
                await asyncio.sleep(0.2)


async def test_over_half_a_second_and_ten_percent_lost_each_command_is_answered_once_and_done_once(host: Host) -> None:
    landing(host)
    async with Relay(host, delay=0.5, loss=0.1) as relay:
        driver = SshDriver(relay.region(), timeouts=replace(QUICK, beat=2.0))
        await driver.start_agent()
        pid = host.agent()
        sent = {f"b{number}": [json.dumps({"id": f"{number}-{row}"}) for row in range(20)] for number in range(8)}
        answers = await asyncio.gather(
            *(driver.ingest("web", "landing", batch, lines) for batch, lines in sent.items()),
            driver.survey("web", ["landing"]),
            driver.state("web"),
        )
        # a repeat of the very request is answered from memory: done again, it would say that the batch is known
        channel = await driver.connection.run(" ".join(remote.COMMAND))
        region = driver.region
        channel.write(
            codec.dumps(remote.Request(do="dial", region=region.name, warehouse=region.warehouse, beat=60)).encode()
            + b"\n"
        )
        assert json.loads(await channel.line(1 << 16, 60))["ready"] == remote.READY
        channel.write(asked(7, "again", "x") * 3)
        first = await answered(channel, 3)
        channel.write(asked(7, "again", "x") + asked(8, "again", "x"))
        later = await answered(channel, 2)
        channel.close()
        await channel.wait_closed()
        await driver.close()
    assert [answer for answer in answers[:8] if answer != {"rows": 20, "already": False}] == []
    assert {json.dumps(one) for one in first} == {
        '{"jsonrpc": "2.0", "id": 7, "result": {"rows": 1, "already": false}}'
    }
    results = {answer["id"]: answer["result"] for answer in later}
    assert results == {7: {"rows": 1, "already": False}, 8: {"rows": 0, "already": True}}
    assert sorted(batches(host)) == ["again", *sent]
    assert landed(host) == sorted([f"{number}-{row}" for number in range(8) for row in range(20)] + ["x"])
    assert (relay.stalls > 0, relay.opened, host.agent()) == (True, 1, pid), "a slow link was taken for a dead one"


@pytest.mark.parametrize("way", ["up", "down"])
async def test_a_link_that_carries_one_way_only_is_found_out_and_the_command_counts_once(host: Host, way: Way) -> None:
    landing(host)
    async with Relay(host) as relay:
        driver = SshDriver(relay.region(), timeouts=QUICK)
        await driver.start_agent()
        pid = host.agent()
        relay.swallow(way)
        with pytest.raises(Unreachable, match=r"broke|closed"):
            await driver.ingest("web", "landing", "b", ['{"id": "x"}'])
        await gone(host, "remote", KEEPALIVE + 60)
        async with asyncio.timeout(60):
            while way == "down" and not landed(host):  # the agent heard it, and is at it
                await asyncio.sleep(0.1)
        assert landed(host) == (["x"] if way == "down" else [])
        relay.mend()
        assert await again(driver, "b", ['{"id": "x"}']) == (way == "down")
        await driver.close()
    assert (landed(host), batches(host), host.agent()) == (["x"], ["b"], pid)


@pytest.mark.parametrize(("way", "rows", "size"), [("up", 5_000, 200_000), ("down", 1, 9)])
async def test_a_link_that_breaks_inside_a_frame_leaves_nothing_half_done(
    host: Host, way: Way, rows: int, size: int
) -> None:
    landing(host)
    lines = [json.dumps({"id": f"{row:06}{os.urandom(40).hex()}"}) for row in range(rows)]
    async with Relay(host) as relay:
        driver = SshDriver(relay.region(), timeouts=PATIENT)
        await driver.start_agent()
        pid = host.agent()
        relay.cut_after(way, size)
        with pytest.raises(Unreachable, match=r"broke|closed"):
            await driver.ingest("web", "landing", "b", lines)
        await gone(host, "remote", KEEPALIVE + 60)
        assert len(landed(host)) == (0 if way == "up" else rows)
        assert await again(driver, "b", lines) == (way == "down")
        await driver.close()
    assert (landed(host), batches(host)) == (sorted(json.loads(line)["id"] for line in lines), ["b"])
    assert (host.agent(), relay.opened) == (pid, 2)
