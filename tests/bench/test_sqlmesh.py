"""Our agent's backfill beside SQLMesh's of the same model: the demo's query of requests, by daily batches and as one job.

Both run on one Spark and Delta, with the settings of our agent's, from nothing to a table that readers see; whole processes are
measured. SQLMesh is given one worker, so that its daily batches do not collide in Delta. No cost counts before all rows are
equal. What our agent builds can be paused after each of its batches, which are runs of whole days.
"""

from pathlib import Path

import pytest

from tests.bench.other_tools.environments import SQLMESH
from tests.bench.other_tools.race import RaceSize, Rival, race
from tests.bench.size import SIZE, Size

pytestmark = pytest.mark.bench

MODULE = "tests.bench.other_tools.run_sqlmesh"
DAILY = Rival(name="SQLMesh's daily batches", tool=SQLMESH, module=MODULE, batch_days=1, goal=1 / 4)
ONE_JOB = Rival(name="SQLMesh's one job", tool=SQLMESH, module=MODULE, batch_days=0, goal=1 / 2)
SMALL = RaceSize(rows=60_000, days=6, rounds=1, judged=False)
LONG = RaceSize(rows=3_000_000, days=30, rounds=3, judged=True)
SIZED = {Size.SMALL: SMALL, Size.LONG: LONG}[SIZE]


def test_a_backfill_beside_sqlmesh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        race(tmp_path, SIZED, (DAILY, ONE_JOB))
