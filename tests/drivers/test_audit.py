"""`verify` over a link: its progress, agents that know none, and a console that leaves before the end."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console import paths
from console.agent.receipts.listener import AuditListener, AuditStopped
from console.agent.service import Service
from console.drivers.local import LocalDriver
from console.errors import DataError
from console.model.codec import encode
from console.model.receipt import AuditProgress, Finding
from console.model.region import Region
from tests.agent.test_service import listening, start
from tests.drivers.test_local import agent, home, place

pytestmark = pytest.mark.slow

__all__ = ["home", "start"]

FINDING = Finding(table="requests", step="backfill/requests/parse", what="source", ok=True, detail="12 rows are equal")
NO_METHOD: dict[str, Any] = {
    "error": {"code": -32000, "message": "no method 'audit'", "data": {"type": "DataError", "hint": "", "code": ""}}
}


def progress(number: int, *found: Finding) -> AuditProgress:
    return AuditProgress(number=number, of=3, table="requests", step=FINDING.step, what="source", found=found)


def notices(*reports: Any) -> list[dict[str, Any]]:
    return [{"method": "audited", "params": report} for report in reports]


async def test_progress_is_heard_and_what_a_newer_agent_adds_is_passed_over(tmp_path: Path) -> None:
    region = place(tmp_path)
    newer = {**encode(progress(2)), "weather!0.9.0": "fog"}
    answers = [*notices(encode(progress(1)), newer, encode(progress(3, FINDING))), {"result": [encode(FINDING)]}]
    heard: list[AuditProgress] = []
    async with agent(region, audit=lambda _: answers):
        driver = LocalDriver(region)
        assert await driver.verify("web", "web-1", heard.append) == (FINDING,)
        await driver.close()
    assert heard == [progress(1), progress(3, FINDING)]


async def test_an_older_agent_verifies_in_one_call_without_progress(tmp_path: Path) -> None:
    region = place(tmp_path)
    heard: list[AuditProgress] = []
    async with agent(region, audit=lambda _: [NO_METHOD], verify=lambda _: [{"result": [encode(FINDING)]}]):
        driver = LocalDriver(region)
        assert await driver.verify("web", "web-1", heard.append) == (FINDING,)
        await driver.close()
    assert heard == []


async def test_an_error_after_the_first_report_does_not_begin_anew(tmp_path: Path) -> None:
    region = place(tmp_path)
    failed = {**NO_METHOD, "error": {**NO_METHOD["error"], "message": "the rollout is damaged"}}
    answers = [*notices(encode(progress(1))), failed]
    async with agent(region, audit=lambda _: answers, verify=lambda _: [{"result": []}]):
        driver = LocalDriver(region)
        with pytest.raises(DataError, match="the rollout is damaged"):
            await driver.verify("web", "web-1", lambda _: None)
        await driver.close()


async def test_a_console_that_leaves_cancels_the_audit(
    start: Callable[[], Service], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, stopped = start(), threading.Event()

    def audit(listener: AuditListener, pipeline: str, rollout: str) -> None:
        listener._tell(progress(1))
        try:
            while True:
                listener.check_stopped()
                time.sleep(0.005)
        except AuditStopped:
            stopped.set()
            raise

    monkeypatch.setattr(service, "audit", audit)
    heard = asyncio.Event()
    async with listening(service, paths.socket_path(str(tmp_path))):
        driver = LocalDriver(Region(name="eu", warehouse=str(tmp_path)))
        verifying = asyncio.create_task(driver.verify("web", "web-1", lambda _: heard.set()))
        await asyncio.wait_for(heard.wait(), 30)
        assert not stopped.is_set()
        verifying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await verifying
        assert await asyncio.to_thread(stopped.wait, 30)
        assert (await driver.state("web")).status.state == "none", "the console's own link stays"
        await driver.close()
