"""A log folder that cannot be written: the agent is started nevertheless."""

import subprocess
from pathlib import Path

import pytest

from console.drivers.local import LocalDriver
from console.model.region import Region
from tests.faults.world import full, mounted

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("fault", ["read-only", "full"])
async def test_an_agent_starts_though_its_log_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    with mounted(tmp_path / "home", 1) as home:
        monkeypatch.setenv("CONSOLE_HOME", str(home))
        if fault == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True, capture_output=True)
            await started(warehouse)
        else:
            with full(home):
                await started(warehouse)


async def started(warehouse: Path) -> None:
    driver = LocalDriver(Region(name="eu", warehouse=str(warehouse)))
    try:
        await driver.start_agent()
        assert (await driver.state("web")).live == ""
    finally:
        await driver.stop()
        await driver.close()
