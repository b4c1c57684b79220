"""Parameters of endpoints and queries reach Spark as values of their declared type, whatever their text holds."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.agent import queries
from console.agent.spark_session import SparkHandle

pytestmark = [pytest.mark.faults, pytest.mark.spark]
VALUES = (
    ("tinyint", "7", 7),
    ("bigint", "1099511627776", 1099511627776),
    ("double", "0.5", 0.5),
    ("decimal(3,2)", "1.50", "1.50"),
    ("boolean", "true", True),
    ("date", "2026-11-07", "2026-11-07"),
    ("timestamp", "2026-11-07T13:00:00", "2026-11-07T13:00:00"),
    ("string", "' OR 1 = 1 --", "' OR 1 = 1 --"),
    ("string", "${env:HOME}", "${env:HOME}"),
)


@pytest.fixture
def line(tmp_path: Path) -> Any:
    release = SimpleNamespace(id="r1", copies=(), table=lambda _: None)
    return SimpleNamespace(readable=lambda _: release, warehouse=tmp_path, path=lambda path: str(tmp_path / path))


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_a_parameter_is_bound_where_delta_parses(
    spark: SparkHandle, line: Any, kind: str, text: str, value: object
) -> None:
    sql = "WITH asked AS (SELECT :given AS it) SELECT it, count(*) AS n FROM asked WHERE it = :given GROUP BY it LIMIT :most"
    args = {"given": [text, kind], "most": ["5", "int"]}
    result = queries.query(
        queries.PipelineReader(line), spark, sql, tables=[], args=json.loads(json.dumps(args)), limit=10
    )
    assert result["rows"] == [[value, 1]]
