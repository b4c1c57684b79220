"""A region whose Spark is behind Spark Connect: what its agent knows, and refuses, before a server is asked. No server, no Java."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from console.agent.connect import sessions, size
from console.agent.connect.handle import ConnectHandle
from console.agent.connect.parameters import statement
from console.agent.errors import ServerUnreachable
from console.agent.failure import kind
from console.agent.region_agent import RegionAgent
from console.agent.settings import Settings, load_settings
from console.drivers.local import agent_config
from console.errors import RegionError
from console.model.region import Region, Spark

REMOTE = "sc://spark.example.net:443/;use_ssl=true"
SETTINGS = Settings(region="eu", remote=REMOTE)


@pytest.mark.parametrize(
    ("slots", "named", "expected"),
    [
        (8, {}, {"spark.sql.files.maxPartitionNum": "7", "spark.sql.shuffle.partitions": "7"}),
        (8, {"spark.sql.shuffle.partitions": "40"}, {"spark.sql.files.maxPartitionNum": "7"}),
        (1, {}, {"spark.sql.files.maxPartitionNum": "1", "spark.sql.shuffle.partitions": "1"}),
        (8, {"spark.sql.files.maxPartitionNum": "9"}, {"spark.sql.files.maxPartitionNum": "7", "spark.sql.shuffle.partitions": "7"}),
    ],
)  # fmt: skip
def test_a_build_leaves_one_of_the_servers_slots_to_live_whatever_the_region_names(
    slots: int, named: dict[str, str], expected: dict[str, str]
) -> None:
    given = size.build_settings(slots, named)
    assert {name: value for name, value in given.items() if "delta" not in name and "Discovery" not in name} == expected


def test_a_server_that_does_not_answer_is_tried_again_and_is_no_reason_to_give_a_rollout_up() -> None:
    assert kind(ServerUnreachable("sc://host: no Spark Connect server answers")) == "passing"


def test_nothing_of_it_can_be_started_lost_or_put_to_sleep() -> None:
    spark = ConnectHandle(SETTINGS, "s3://lake/eu")
    spark.look()
    spark.kill("no reason")
    spark.stop()
    assert not spark.sleep(0.0)
    assert (spark.started, spark.lost, spark.ended, spark.rests, spark.asleep_since) == (False, False, "", False, 0.0)


def test_a_region_with_a_remote_has_such_a_spark_and_every_other_one_its_own(tmp_path: Path) -> None:
    (tmp_path / "_console").mkdir()
    of = {kind: RegionAgent(tmp_path, Settings(region="eu", remote=kind), -1).spark for kind in (REMOTE, "")}
    assert [isinstance(spark, ConnectHandle) for spark in of.values()] == [True, False]


def test_a_warehouse_on_a_disk_is_refused_before_its_lock() -> None:
    with pytest.raises(RegionError, match="is on this host's disk") as refused:
        sessions.check_region(Path("/srv/lake"), REMOTE)
    assert refused.value.code == "E_CONNECT"


def test_an_agent_gets_the_address_in_place_of_a_master_and_another_region_no_new_key() -> None:
    far = agent_config(Region(name="eu", warehouse="s3://lake/eu", spark=Spark("", REMOTE)), 0.5)
    assert load_settings(json.dumps(far)).remote == REMOTE
    assert "master" not in far
    near = agent_config(Region(name="eu", warehouse="/srv/lake"), 0.5)
    assert (near["master"], "remote" in near) == ("local[2]", False)


def test_settings_with_a_token_in_the_address_are_refused_without_it() -> None:
    with pytest.raises(RegionError, match="without token") as refused:
        load_settings(json.dumps({"region": "eu", "remote": f"{REMOTE};token=dapi0123"}))
    assert (refused.value.code, "dapi0123" in str(refused.value)) == ("E_MASTER", False)


def test_an_agent_without_the_client_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "LIBRARIES", ("no-such-distribution",))
    with pytest.raises(RegionError, match="no-such-distribution is not installed") as refused:
        sessions.require_libraries()
    assert (refused.value.code, "[connect]" in refused.value.hint) == ("E_EXTRA", True)


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (5, "CAST('5' AS INT)"),
        (1 << 31, "CAST('2147483648' AS BIGINT)"),
        (True, "CAST('true' AS BOOLEAN)"),
        (1.5, "CAST('1.5' AS DOUBLE)"),
        (Decimal("-0.25"), "CAST('-0.25' AS DECIMAL(2, 2))"),
        (Decimal("1E+3"), "CAST('1000' AS DECIMAL(4, 0))"),
        (date(2026, 11, 3), "CAST('2026-11-03' AS DATE)"),
        (datetime(2026, 11, 3, 1, tzinfo=UTC), "CAST('2026-11-03T01:00:00+00:00' AS TIMESTAMP)"),
        ("it's \\", r"'it\'s \\'"),
    ],
)
def test_a_parameter_is_bound_beside_the_text_of_its_query(value: object, typed: str) -> None:
    sql = "SELECT ':v' FROM t WHERE v = :v"
    assert (
        statement(sql, {"v": value}) == rf"EXECUTE IMMEDIATE 'SELECT \':v\' FROM t WHERE v = :v' USING {typed} AS `v`"
    )
    assert statement(sql, {}) == sql


class Told(PySparkException):
    """An error of Spark Connect's, as its client gives it: what it is itself, and the server's stack trace."""

    def __init__(self, *causes: str) -> None:
        super().__init__(message="[TASK_WRITE_FAILED] a task failed SQLSTATE: 58030")
        self._causes = causes

    def getStackTrace(self) -> str:
        frames = "\n\tat org.apache.spark.Job.run(Job.scala:1)"
        return "org.apache.spark.SparkException" + "".join(f"{frames}\nCaused by: {cause}" for cause in self._causes)


TASK = "org.apache.spark.SparkException: [TASK_WRITE_FAILED] a task failed SQLSTATE: 58030"


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        ((TASK,), "passing"),
        ((TASK, "a.b.C: [CAST_INVALID_INPUT] The value '[X] SQLSTATE: 42000\nsecond line' is malformed. SQLSTATE: 22018"), "value"),
        ((TASK, "a.b.C: [OTHER.SUB] what stands in front of 'a\n\nb' SQLSTATE: 22003\n== DataFrame =="), "value"),
        ((TASK, "a.b.C: [USER_RAISED_EXCEPTION] PARTITION_DAY_OUT_OF_RANGE: t.day SQLSTATE: P0001"), "day"),
        ((TASK, "java.lang.OutOfMemoryError: Java heap space"), "memory"),
        ((TASK, "java.io.IOException: the value of CAST_INVALID_INPUT is no condition"), "value"),
        ((TASK, "a.b.C: [OTHER] a value 'CAST_INVALID_INPUT' SQLSTATE: 58030"), "passing"),
    ],
)  # fmt: skip
def test_a_failure_is_judged_by_the_causes_that_the_server_tells(causes: tuple[str, ...], expected: str) -> None:
    """Where Spark names no condition, the message is all there is, as in a JVM."""
    assert kind(Told(*causes)) == expected
