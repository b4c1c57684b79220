"""Versions as jars have them, sets that were tested, and functions that an older Spark lacks."""

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from console import paths, spark_versions
from console.drivers import prerequisites
from console.errors import Problem
from console.planning.review.older_spark import lacked_by
from tests.matrix import __main__ as matrix
from tests.matrix import functions
from tests.matrix.environments import OLDER
from tests.planning.world import live, pipeline, planned, with_column


def test_versions_are_read_from_the_names_of_jars() -> None:
    names = (
        "spark-core_2.12-3.5.6.jar", "scala-library-2.12.18.jar", "hadoop-client-api-3.3.4.jar", "spark-sql_2.12-9.jar",
        "io.delta_delta-spark_2.12-3.3.2.jar", "io.delta_delta-storage-9.jar",
    )  # fmt: skip
    found = spark_versions.of_jars(names)
    assert found == spark_versions.SparkVersions(spark="3.5.6", scala="2.12.18", hadoop="3.3.4", delta="3.3.2")
    assert str(replace(found, delta="")) == "Spark 3.5.6, Scala 2.12.18, Hadoop 3.3.4, Delta missing"


def test_the_set_of_the_tests_is_the_one_that_is_said_to_be_tested() -> None:
    here = spark_versions.installed(paths.jars_dir())
    assert (here.spark, here.delta) == (version("pyspark"), version("delta-spark"))
    assert spark_versions.tested()[here] == "make test"
    assert prerequisites.versions() == prerequisites.Prerequisite("versions", True, f"{here}: tested by make test")


def test_another_set_is_said_to_be_untested(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(spark_versions.installed(paths.jars_dir()), delta="4.4.1")
    monkeypatch.setattr(spark_versions, "installed", lambda _: other)
    found = prerequisites.versions()
    assert (found.ok, found.detail) == (None, f"{other}: this set was not tested")
    assert "Delta 4.4.0" in found.fix


@pytest.mark.parametrize(
    ("spark", "lacks", "has"),
    [
        ("3.4.4", "try_mod", "abs"),
        ("3.5.9", "try_mod", "hll_sketch_agg"),
        ("4.0.5", "kll_sketch_agg_double", "try_mod"),
        ("4.1.0", "", "kll_sketch_agg_double"),
        ("4.2.0", "", "kll_sketch_agg_double"),
        ("", "", "kll_sketch_agg_double"),
        ("snapshot", "", "kll_sketch_agg_double"),
    ],
)
def test_functions_come_with_major_and_minor_versions(spark: str, lacks: str, has: str) -> None:
    names = lacked_by(spark)
    assert (lacks in names, has in names) == (bool(lacks), False)


def test_a_query_that_the_regions_spark_cannot_run_is_refused_by_name() -> None:
    wanted = with_column(pipeline(), "rest", "int", "try_mod(id, 7)")

    def refusals(spark: str) -> list[Problem]:
        return [p for p in planned(wanted, replace(live(), spark=spark)).problems if p.code == "C146"]

    assert (refusals("4.2.0"), refusals("")) == ([], [])
    (hourly,) = refusals("4.0.1")  # its percentile is a sketch
    assert (hourly.severity, hourly.node) == ("refuse", "requests_by_hour")
    assert hourly.message == (
        "requests_by_hour needs kll_merge_agg_double, kll_sketch_agg_double, kll_sketch_get_n_double,"
        " kll_sketch_get_quantile_double, which Spark 4.0.1 of eu lacks"
    )
    assert [problem.node for problem in refusals("3.5.6")] == ["requests", "requests_by_hour"]


def test_the_list_of_functions_is_written_from_what_each_spark_says(tmp_path: Path) -> None:
    line = json.dumps({"version": "3.5.6", "names": ["abs", "!=", "mode"]})
    number, has = functions.of(f"noise\n{line}\n")
    text = functions.written("4.2.0", frozenset({"abs", "mode", "kll", "zip"}), {number: has})
    module: dict[str, dict[str, frozenset[str]]] = {}
    exec(text, module)
    assert module["LACKING"] == {"3.5.6": frozenset({"kll", "zip"})}


def test_a_set_that_passes_replaces_the_former_one_of_its_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "tested.jsonl"
    record.write_text(matrix.RECORD.read_text())
    series = OLDER[0]
    others = [line for line in record.read_text().splitlines() if f'"spark": "{series.name}.' not in line]
    monkeypatch.setattr(matrix, "RECORD", record)
    for patch in ("6", "7"):
        matrix.keep(series, {"spark": f"{series.name}.{patch}", "scala": "2", "hadoop": "3", "delta": "3"})
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    sparks = [entry["versions"]["spark"] for entry in entries]
    assert sparks.count(f"{series.name}.7") == 1
    assert f"{series.name}.6" not in sparks
    assert record.read_text().splitlines()[:-1] == others, "a set of an older series stands below"
