"""Our agent's backfill beside dbt's of the same model by microbatches of a day, as in `test_sqlmesh`.

dbt-spark's method `session` runs on the same Spark and Delta. dbt-core 1.12 needs a parser that its build downloads from outside
of the registry, so 1.11 is measured.
"""

from pathlib import Path

import pytest

from tests.bench.other_tools.environments import DBT
from tests.bench.other_tools.race import Rival, race
from tests.bench.test_sqlmesh import SIZED

pytestmark = pytest.mark.bench

MICROBATCHES = Rival(
    name="dbt's microbatches", tool=DBT, module="tests.bench.other_tools.run_dbt", batch_days=1, goal=1 / 4
)


def test_a_backfill_beside_dbt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        race(tmp_path, SIZED, (MICROBATCHES,))
