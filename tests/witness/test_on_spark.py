"""Only differences confirmed on Spark are shown, not those that only DuckDB has."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from console.cli.plan.witness import witness_text
from console.drivers.replay import Given, Replayer
from console.planning.compare import QueryDifference
from console.witness import find_witness, witness_between, witness_query
from tests.cli.conftest import World, deployed, world  # fixtures
from tests.witness.edits import CHANGES, TABLES

__all__ = ["deployed", "world"]
pytestmark = pytest.mark.spark
UNKNOWN = QueryDifference(rows="changed")


@pytest.fixture(scope="module")
def spark() -> Iterator[Replayer]:
    """On a host that is nine hours ahead of UTC."""
    with pytest.MonkeyPatch.context() as host, Replayer() as started:
        host.setenv("TZ", "Asia/Tokyo")
        yield started


def test_a_time_is_utc_wherever_the_host_stands(spark: Replayer) -> None:
    given = {
        "t": Given((("at", "timestamp"), ("n", "timestamp_ntz")), (("2026-11-07T23:30:00", "2026-11-07T23:30:00"),))
    }
    (ran,) = spark.ask(given, ["SELECT at, n, CAST(at AS STRING) AS said, to_date(at) AS day FROM t"])
    assert ran.rows == (("2026-11-07T23:30:00", "2026-11-07T23:30:00", "2026-11-07 23:30:00", "2026-11-07"),)


def test_every_known_change_has_a_witness_on_spark(spark: Replayer) -> None:
    without = [
        (old, new)
        for old, new, rows in CHANGES
        if (result := find_witness(witness_query(old, new, TABLES, UNKNOWN), spark).witness) is None
        or sum(len(given.rows) for given in result.tables.values()) > rows
    ]
    assert without == []


def test_a_difference_that_only_duckdb_sees_is_not_shown(spark: Replayer) -> None:
    """A tab is white space to Spark's cast and none to DuckDB's; the character classes of their regexes differ too."""
    old = "SELECT regexp_replace(b, '\\\\p{L}', '') AS x FROM t"
    result = find_witness(witness_query(old, old.replace("{L}", "{L}{1}"), TABLES, UNKNOWN), spark, seconds=0.5)
    assert result.witness is None
    assert result.tried > 20


def test_what_duckdb_cannot_run_is_searched_on_spark(spark: Replayer) -> None:
    result = find_witness(
        witness_query("SELECT a FROM t", "SELECT a, stack(2, a, 1) AS x FROM t", TABLES, UNKNOWN), spark
    )
    assert result.witness is not None
    assert [len(given.rows) for given in result.witness.tables.values()] == [1]
    assert (len(result.witness.old.rows), len(result.witness.new.rows)) == (1, 2)


def test_a_query_that_fails_where_the_other_does_not_is_a_difference(spark: Replayer) -> None:
    result = witness_between(
        "SELECT CAST(b AS INT) AS x FROM t", "SELECT TRY_CAST(b AS INT) AS x FROM t", TABLES, spark
    )
    assert result.witness is not None
    assert "CAST_INVALID_INPUT" in result.witness.old.error
    assert result.witness.new.rows == ((None,),)
    assert "old fails: [CAST_INVALID_INPUT]" in witness_text(result)


def test_chance_is_no_witness(spark: Replayer) -> None:
    result = find_witness(
        witness_query("SELECT rand() AS x FROM t", "SELECT 1 - rand() AS x FROM t", TABLES, UNKNOWN), spark, seconds=0.2
    )
    assert result.witness is None
    assert "the results differ by chance" in result.reason


def test_values_of_every_type_reach_spark_and_come_back(spark: Replayer) -> None:
    row = (
        1, "x", 1.5, "2024-02-29T23:59:59.000001", (1, None), "{}", "1.10", (("a", 1),), (1, "y"), "00ff", True,
        "2024-02-29T00:00:00", "2024-02-29", 1 << 40, -128,
    )  # fmt: skip
    columns = tuple(TABLES["t"].items())
    (answer,) = spark.ask({"t": Given(columns, (row, (None,) * len(row)))}, ["SELECT * FROM t ORDER BY a NULLS LAST"])
    assert answer.error == ""
    assert answer.columns == tuple(TABLES["t"])
    back = list(answer.rows[0])
    assert back[3].startswith("2024-02-29T23:59:59.000001")
    assert back[7] == {"a": 1}
    kept = [at for at in range(len(row)) if at not in (3, 7)]
    assert json.dumps([back[at] for at in kept]) == json.dumps([row[at] for at in kept])
    assert answer.rows[1] == (None,) * len(row)


def test_compare_shows_a_witness(world: World, tmp_path: Path) -> None:
    for name, text in (
        ("old.sql", "SELECT DISTINCT a FROM t"),
        ("new.sql", "SELECT DISTINCT a, b FROM t"),
        ("schema.json", json.dumps({"t": {"a": "int", "b": "string"}})),
    ):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / "old.sql"), str(tmp_path / "new.sql"), "--schema", str(tmp_path / "schema.json")]
    done = world.call("compare", *files, "--witness", "--output", "json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert (data["rows"], data["witness"]["found"]) == ("changed", True)
    assert sorted(data["witness"]["tables"]["t"]["rows"]) == [[0, ""], [0, "a"]]
    assert len(data["witness"]["old"]["rows"]) == 1
    assert len(data["witness"]["new"]["rows"]) == 2


def test_a_plan_shows_a_witness_for_each_edited_query(
    deployed: World, spark: Replayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the Spark that is up already: `compare` above starts one of its own."""
    monkeypatch.setattr("console.witness.plans.Replayer", lambda conf: nullcontext(spark))
    deployed.write({
        "plans/web/materializations/parse.sql": (
            "/*\ninto: requests\n*/\n"
            "SELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.agent') AS agent FROM landing WHERE id <> 'probe'\n"
        )
    })  # fmt: skip
    done = deployed.call("plan", "--witness", "--output", "json", "--regions", "eu,us")
    assert done.exit_code == 0, done.output
    output = json.loads(done.stdout)["witnesses"]
    assert [(one["region"], one["table"], one["materialization"]) for one in output] == [
        ("us", "requests", "parse"),
        ("eu", "requests", "parse"),
    ]
    for one in output:
        assert one["found"]
        assert len(one["tables"]["landing"]["rows"]) == 1
        assert (len(one["old"]["rows"]), len(one["new"]["rows"])) == (1, 0)
