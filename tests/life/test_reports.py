"""A run as a CI starts it, over a real region: its report names each check, a planted day, and no value of any row."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import DeltaTable, write_deltalake

from tests.life.region import LANDING, LiveRegion
from tests.life.test_lost_days import AFTER, BEFORE, by_day, written
from tests.reports import strict
from tests.reports.test_junit import read

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
PLANTED = "2026-11-02"
CANARY = "canary-5e1f"  # a value of rows in the source, in what is parsed of it, and in the planted row
PASSED, FAILED = (), ("failure",)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("ci"), rows=300)
    rows = [
        {
            "id": f"c{day}",
            "ts": datetime(2026, 11, day, tzinfo=UTC),
            "payload": f'{{"ip": "{CANARY}", "ua": "{CANARY}"}}',
        }
        for day in (1, 2, 3)
    ]
    write_deltalake(str(live.warehouse / "landing"), pa.Table.from_pylist(rows, LANDING), mode="append")
    by_day(live.warehouse / "landing")
    try:
        yield live
    finally:
        await live.close()


async def ran(region: LiveRegion, folder: Path, *words: str) -> tuple[int, dict[str, tuple[tuple[str, ...], str]]]:
    """Exit code, and the region's cases: name → what is in it, and what that says. The page is checked as well."""
    xml, page, text = folder / "junit.xml", folder / "report.html", folder / "summary.md"
    command = [sys.executable, "-m", "console.main", *words, "--project", str(region.root), "--no-input"]
    files = ["--junit", str(xml), "--report", str(page)]
    process = await asyncio.create_subprocess_exec(
        *command, *files, env={**os.environ, "GITHUB_STEP_SUMMARY": str(text)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert page.exists(), output.decode()
    shown = strict.read(page.read_text()).text
    for each in (xml.read_text(), shown, text.read_text()):
        assert CANARY not in each
    cases = read(xml.read_text()).findall(".//testcase[@classname='web.eu']")
    results = {case.attrib["name"]: (tuple(child.tag for child in case), "".join(case.itertext())) for case in cases}
    assert "Receipts of backfill/" in shown, output.decode()
    return process.returncode or 0, results

    return {name: value for name, value in os.environ.items() if name != "GITLAB_CI"}


async def test_the_report_of_a_real_run_names_every_check_and_the_day_that_was_planted(
    region: LiveRegion, tmp_path: Path
) -> None:
    region.install("web", written(tmp_path / "before", BEFORE))
    code, cases = await ran(region, tmp_path, "--headless", "--regions", "eu")
    assert code == 3, cases
    checks = {f"{check.table}: {check.check}" for check in (await region.driver.state("web")).status.checks}
    assert len(checks) >= 2
    assert {name: inner for name, (inner, _) in cases.items()} == dict.fromkeys(["rollout", *checks], PASSED)

    state = await region.driver.state("web")
    code, cases = await ran(region, tmp_path, "apply", "--regions", "eu", "--yes")
    assert (code, cases["rollout"][0]) == (0, PASSED)

    # somebody rewrites one row of the source, which live rows have passed: only a replay sees what it says now
    changed = f'\'{{"ip": "{CANARY}-too"}}\''
    DeltaTable(str(region.warehouse / "landing")).update(updates={"payload": changed}, predicate="id = 'c2'")

    region.install("web", written(tmp_path / "after", AFTER))
    code, cases = await ran(region, tmp_path, "--headless", "--regions", "eu")
    assert code == 1, cases
    inner, words = cases["requests: unchanged columns"]
    assert inner == FAILED
    assert f"ip on {PLANTED}" in words
    assert set(re.findall(r"20\d\d-\d\d-\d\d", words)) == {PLANTED}
    assert cases["rollout"][0] == FAILED
    assert cases["requests: history is complete"][0] == PASSED
    assert (await region.driver.state("web")).live == state.status.release
