"""A landing table of somebody else's, which nobody writes at the moment: `apply` passes its gate and `verify` its rows,
through the command line.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import write_deltalake

from tests.life.region import LANDING, LiveRegion
from tests.life.test_lost_days import AFTER, BEFORE, written

# one such gate is passed in every run of the tests: the page's own warehouse (tests/pages)
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
FOREIGN = {"tables/landing.yaml": BEFORE["tables/landing.yaml"].replace("managed: true\n", "")}
ROWS = 600  # in three commits


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("quiet"), rows=ROWS)
    try:
        yield live
    finally:
        await live.close()


async def program(region: LiveRegion, *words: str) -> tuple[int, str]:
    """Exit code and what it says."""
    command = [sys.executable, "-m", "console.main", *words, "--project", str(region.root), "--output", "json"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def feed_checks(region: LiveRegion) -> list[tuple[bool | None, int, int, str]]:
    checks = (await region.driver.state("web")).status.checks
    return [(c.ok, c.commits, c.rows, c.detail) for c in checks if c.check == "feed parse"]


async def test_a_quiet_landing_passes_every_gate_by_its_last_commits_and_then_by_its_live_rows(
    region: LiveRegion, tmp_path: Path
) -> None:
    region.install("web", written(tmp_path / "before", {**BEFORE, **FOREIGN}))
    code, output = await program(region, "apply", "--yes", "--region", "eu")
    assert code == 0, output
    ((ok, commits, rows, detail),) = await feed_checks(region)
    assert (ok, commits, rows) == (True, 2, 400), detail
    assert detail.startswith("quiet since 20"), detail
    assert detail.endswith("2 of its last commits (400 rows), read as live rows are, are what Delta reads")

    await landed(region, 5, 7)
    assert await live_finding(region, "web-1") == (
        True,
        "2 of 2 live commits (12 rows) computed again from landing: equal",
    )

    region.install("web", written(tmp_path / "after", {**AFTER, **FOREIGN}))
    code, output = await program(region, "apply", "--yes", "--region", "eu")
    assert code == 0, output
    ((ok, commits, rows, detail),) = await feed_checks(region)
    assert (ok, commits, rows) == (True, 2, 12), detail
    assert detail.startswith("quiet since 20"), detail


async def landed(region: LiveRegion, *sizes: int) -> None:
    """One commit a size by the landing table's own writer, each passed by the feed before the next comes."""
    for size in sizes:
        batch = pa.Table.from_pylist([region._next() for _ in range(size)], LANDING)
        write_deltalake(str(region.warehouse / "landing"), batch, mode="append")
        await region.followed("web")


async def live_finding(region: LiveRegion, rollout: str) -> tuple[Any, str]:
    code, output = await program(region, "verify", "--rollout", rollout)
    assert code == 0, output
    results = [finding for finding in findings(json.loads(output)) if finding.get("what") == "live"]
    assert len(results) == 1, output
    return results[0]["ok"], results[0]["detail"]


def findings(data: Any) -> list[dict[str, Any]]:
    """Every object that says what was checked, wherever it stands."""
    match data:
        case {"what": _}:
            return [data]
        case dict():
            return [item for value in data.values() for item in findings(value)]
        case list():
            return [item for value in data for item in findings(value)]
    return []
