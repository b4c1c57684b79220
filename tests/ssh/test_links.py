"""A real OpenSSH server behind a link that is cut, halved, slowed and mended: nothing is lost, doubled or misreported."""

import asyncio
import json
import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.store.ledger import Releases
from console.drivers.protocol import Who
from console.drivers.ssh.driver import SshDriver
from console.errors import DataError, Unreachable
from console.model.live import Live, Release, TableState, Version
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.model.schema import Column, Table
from console.runner.fleet import Fleet
from console.runner.journal import Journal
from console.runner.view import Link
from tests.ssh.host import QUICK, Host

pytestmark = pytest.mark.ssh
KEEPALIVE = QUICK.beat * (QUICK.beats + 2)


def landing(host: Host) -> None:
    """The region's live release: one managed landing table, empty."""
    lake, columns = host.folder / "lake", (Column(name="id", type="string"),)
    write_deltalake(str(lake / "landing"), pa.Table.from_pylist([], pa.schema([("id", pa.string())])))
    table = Table(name="landing", kind="landing", columns=columns, managed=True)
    state = TableState(
        table=table,
        version=Version(content="landing", path="landing", columns=columns),
        read="SELECT * FROM stored",
        rows="",
        values={},
    )
    releases = Releases(lake, "web")
    releases.propose(Release(id="r1", pipeline="web", digest="d", tables=(state,), feeds=()), "web-1", "ada", "laptop")
    releases.swap("", "r1", "ada", "laptop")


def landed(host: Host) -> list[str]:
    rows = DeltaTable(str(host.folder / "lake" / "landing")).to_pyarrow_table().column("id").to_pylist()
    return sorted(str(value) for value in rows)


async def reached(driver: SshDriver, seconds: float = 60) -> None:
    """Ask until the region answers again."""
    until = time.monotonic() + seconds
    while True:
        try:
            await driver.state("web")
            return
        except Unreachable:
            assert time.monotonic() < until
            await asyncio.sleep(0.2)


async def listened(driver: SshDriver) -> None:
    """To whatever the agent tells, without end."""
    async for _ in driver.watch("web"):
        pass


async def gone(host: Host, word: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while host.processes(word):
        assert time.monotonic() < until, f"{word} still runs on the far side"
        await asyncio.sleep(0.1)


async def test_a_look_at_a_region_starts_nothing_there(host: Host) -> None:
    landing(host)
    driver = SshDriver(host.region(), timeouts=QUICK)
    live, state = await asyncio.gather(driver.survey("web", ["landing"]), driver.state("web"))
    with pytest.raises(Unreachable) as nobody:
        await listened(driver)
    await driver.close()
    assert live.release is not None
    assert (live.region, live.release.id, state.live, state.attended) == ("eu", "r1", "r1", False)
    assert nobody.value.code == "E_NO_AGENT"
    assert nobody.value.hint == f"on its host: console follow --warehouse {host.region().warehouse}"
    assert host.processes("serve") == []
    assert not (host.folder / "lake" / "_console" / "agent.lock").exists()
    assert host.log.count("Accepted publickey") == 1, "one connection serves all links"


async def test_an_agent_outlives_the_console_that_started_it_and_the_next_one_finds_it(host: Host) -> None:
    one, two = SshDriver(host.region(), timeouts=QUICK), SshDriver(host.region(), timeouts=QUICK)
    await one.start_agent()
    pid = host.agent()
    await one.close()
    host.restart()
    await two.start_agent()
    assert host.agent() == pid
    await two.stop()
    await two.close()
    await gone(host, "serve", 10)


async def test_a_cut_link_is_told_as_unreachable_and_the_agent_goes_on(host: Host) -> None:
    driver = SshDriver(host.region(), timeouts=QUICK)
    await driver.start_agent()
    pid = host.agent()
    heard = asyncio.create_task(listened(driver))
    await asyncio.sleep(1)
    host.cut()
    cut = time.monotonic()
    with pytest.raises(Unreachable):
        await driver.state("web")
    with pytest.raises(Unreachable):
        await heard
    assert time.monotonic() - cut < KEEPALIVE + 30
    # what bridged to it goes by itself, so that an agent tied to this console learns that it is gone
    await gone(host, "remote", KEEPALIVE + 30)
    os.kill(pid, 0)
    with pytest.raises(Unreachable, match="no SSH"):
        await driver.state("web")
    host.mend()
    await reached(driver)
    assert host.agent() == pid
    await driver.close()


async def test_a_link_that_only_we_believe_in_is_found_out(host: Host) -> None:
    driver = SshDriver(host.region(), timeouts=QUICK)
    await driver.start_agent()
    pid = host.agent()
    host.cut()
    host.end_sessions()
    host.mend()
    asked = time.monotonic()
    with suppress(Unreachable):
        await driver.state("web")
    assert time.monotonic() - asked < KEEPALIVE + 30
    await reached(driver)
    assert host.agent() == pid
    await driver.close()


async def test_batches_count_once_however_often_the_link_breaks_in_the_middle(host: Host) -> None:
    landing(host)
    driver = SshDriver(host.region(), timeouts=QUICK)
    await driver.start_agent()
    stop = asyncio.Event()
    connections = 0

    async def nemesis() -> None:
        nonlocal connections
        for cut in (0.3, 0.9, 0.1, 0.5, 1.7):
            known = host.log.count("Accepted publickey")
            await asyncio.sleep(cut)
            host.end_sessions()
            while host.log.count("Accepted publickey") == known:
                await asyncio.sleep(0.05)
        connections = host.log.count("Accepted publickey")
        host.cut()
        await asyncio.sleep(KEEPALIVE)
        host.mend()
        stop.set()

    async def send() -> tuple[int, int]:
        number = lost = 0
        while not stop.is_set() or number < 20:
            lines = [json.dumps({"id": f"{number:04}-{row}"}) for row in range(50)]
            while True:
                try:
                    await driver.ingest("web", "landing", f"b{number}", lines)
                    break
                except Unreachable:
                    lost += 1
                    await asyncio.sleep(0.1)
            number += 1
        return number, lost

    (sent, lost), _ = await asyncio.gather(send(), nemesis())
    await driver.close()
    assert (connections >= 6, lost >= 1) == (True, True)
    assert landed(host) == [f"{number:04}-{row}" for number in range(sent) for row in sorted(map(str, range(50)))]


async def test_over_a_slow_link_long_messages_arrive_and_nothing_is_taken_for_dead(host: Host) -> None:
    landing(host)
    driver = SshDriver(host.region(), timeouts=replace(QUICK, beat=2.0))
    await driver.start_agent()
    host.slow(rate="800kbit")
    lines = [json.dumps({"id": f"{row:06}{os.urandom(40).hex()}"}) for row in range(4000)]
    took = time.monotonic()
    answer = await driver.ingest("web", "landing", "b", lines)
    took = time.monotonic() - took
    host.slow(off=True)
    again = await driver.ingest("web", "landing", "b", lines)
    await driver.close()
    assert took > 2, "the link was not slow enough to show anything"
    assert (answer["rows"], again["already"], len(landed(host))) == (4000, True, 4000)


def unplanned(pipeline: Pipeline, live: Live, region: Region) -> Plan:
    raise DataError("nothing is planned here")


async def test_the_fleet_shows_a_region_it_cannot_reach_and_when_it_is_back_and_calls_it_neither_failed_nor_done(
    host: Host,
) -> None:
    landing(host)
    driver = SshDriver(host.region(), timeouts=QUICK)
    await driver.start_agent()
    fleet = Fleet(
        "web", {"eu": driver}, {"eu": Pipeline(name="web")}, unplanned, Journal(), Who("ada@laptop", "laptop")
    )
    seen: list[tuple[str, str, str]] = []

    async def until(*links: Link) -> None:
        deadline = time.monotonic() + 90
        while True:
            view = fleet.views["eu"]
            seen.append((view.link, view.link_why, view.status.shown))
            if view.link in links:
                return
            assert time.monotonic() < deadline, seen[-1]
            await asyncio.sleep(0.05)

    reached: tuple[Link, Link] = ("connecting", "connected")  # its state was read; one of its events was
    await fleet.refresh()
    await until(*reached)
    host.cut()
    await until("unreachable")
    host.mend()
    await until(*reached)
    await fleet.close()
    why = next(why for link, why, _ in seen if link == "unreachable")
    assert "eu" in why
    assert {shown for _, _, shown in seen} == {"none"}
    assert Path(host.folder / "lake" / "landing").is_dir()
