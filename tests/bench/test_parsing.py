"""What one `from_json` saves in place of several `get_json_object`, as a share of a batch's processor time, in one run.

Written to `console/planning/review/parsing_gain.py`, it is what `console check` tells (C147). A batch is one INSERT of all rows into a
Delta table, in a warm JVM, both ways in turn.
"""

import os
import statistics
from pathlib import Path
from typing import Any

import pytest

from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.planning.review import parsing_gain
from tests.bench.processor_time import spent
from tests.bench.report import VARIABLE, Measurement, check

pytestmark = pytest.mark.bench

GENERATED = Path(parsing_gain.__file__)
ROWS, ROUNDS = 600_000, 5
CALLS = (3, 6, 12)
KEYS = [f"key_{n}" for n in range(max(CALLS))]


def queries(calls: int) -> tuple[str, str]:
    """The same texts: by as many calls, and by one."""
    keys = KEYS[:calls]
    several = ", ".join(f"get_json_object(payload, '$.{key}') AS {key}" for key in keys)
    schema = ", ".join(f"{key} STRING" for key in keys)
    once = ", ".join(f"event.{key} AS {key}" for key in keys)
    parsed = f"SELECT id, day, from_json(payload, '{schema}') AS event FROM landing"
    return f"SELECT id, day, {several} FROM landing", f"SELECT id, day, {once} FROM ({parsed})"


def row_of(calls: int) -> str:
    return f"a batch with `from_json` once, beside {calls} calls of `get_json_object`"


def seconds(session: Any, jvm: int, query: str, path: Path) -> float:
    began = spent(jvm)
    session.sql(query).write.format("delta").mode("overwrite").option("overwriteSchema", "true").partitionBy(
        "day"
    ).save(str(path))
    return spent(jvm) - began


def test_one_parse_in_place_of_several(tmp_path: Path) -> None:
    handle = SparkHandle(Settings(region="eu", master="local[2]"), -1)
    session = handle.session()
    jvm = session.sparkContext._gateway.proc.pid
    fields = ", ".join(f"'{key}', concat('value of {key} ', id % 977)" for key in KEYS)
    made = f"SELECT id, date_add(DATE '2026-11-01', CAST(id % 5 AS INT)) AS day, to_json(map({fields})) AS payload FROM range({ROWS})"
    session.sql(made).write.format("delta").save(str(tmp_path / "landing"))
    session.read.format("delta").load(str(tmp_path / "landing")).createOrReplaceTempView("landing")
    gain: dict[int, float] = {}
    for calls in CALLS:
        several, once = queries(calls)
        assert session.sql(f"({several}) EXCEPT ALL ({once})").count() == 0
        shares = []
        for _ in range(1 + ROUNDS):
            many, one = (seconds(session, jvm, query, tmp_path / f"by_{n}") for n, query in enumerate((several, once)))
            shares.append(1 - one / many)
        gain[calls] = round(statistics.median(shares[1:]), 3)
    handle.stop()
    if os.environ.get(VARIABLE):
        GENERATED.write_text(f'"""{parsing_gain.__doc__}"""\n\nGAIN: dict[int, float] = {gain}\n')
    check(
        *(
            Measurement(
                what=row_of(calls), figure=1 - share, limit=1.0,
                text=f"{1 - share:.2f} × its processor time",
            )
            for calls, share in gain.items()
        )
    )  # fmt: skip
