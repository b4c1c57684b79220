"""S2: what a producer puts into a column by which a table is partitioned becomes neither SQL nor a path."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from console.agent.maintenance.compaction import compact, crowded
from tests.faults.rules.tables import foreign

pytestmark = [pytest.mark.faults, pytest.mark.spark]
VALUES = (
    "x' OR '1' = '1",
    "../../../outside %2e%2e%2f ${spark.app.name} \\' OR 1 = 1 --\n“quotes” and `ticks`, ending in \\",
    "plain",
)


def test_s02_a_rows_value_becomes_no_sql_and_no_path(tmp_path: Path, session: Any) -> None:
    """Each partition is rewritten by its value, and no other one with it; nothing is written beside the table."""
    schema = pa.schema([("n", pa.int64()), ("kind", pa.string())])
    commits = (pa.table({"n": range(at, at + 3), "kind": list(VALUES)}, schema) for at in (0, 100))
    place = tmp_path / "deep" / "within" / "lake" / "landing"
    table = foreign(place, *commits, partition_by=("kind",))
    before = DeltaTable(table).to_pyarrow_table().to_pylist()
    crowds = {crowd.values[0][1]: crowd for crowd in crowded(table, many=2)}
    assert set(crowds) == set(VALUES)
    files = Counter({value: 2 for value in VALUES})
    for value in VALUES[:2]:
        assert compact(session, table, crowds[value]).files == 1
        files[value] = 1
        assert files == Counter(DeltaTable(table).get_add_actions(flatten=True).column("partition.kind").to_pylist())
    after = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert Counter(map(str, after)) == Counter(map(str, before))
    assert {path for path in tmp_path.rglob("*.parquet") if place not in path.parents} == set()
