"""What a rollout asks of a Spark behind Spark Connect: a batch of history, and recorded calls. Judged by deltalake."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable, Schema

from console.agent.calls.replay import CalledRelease, replay
from console.agent.connect.handle import ConnectHandle
from console.agent.expectations import guard
from console.agent.feeds import app_ids, backfill, commit
from console.agent.object_store.object_path import ObjectPath
from console.agent.settings import Settings
from console.agent.store import commits
from console.model.expectation import RowCheck
from console.model.live import Release
from console.model.recorded_call import AnswerForm, CallQuery, PlannedCall
from console.model.slices import Slice
from tests.cluster.connect_server import ConnectServer
from tests.faults.rules.tables import COLUMNS, column_values, foreign, rows, state
from tests.objects.holders import agent
from tests.objects.proxy import Proxy
from tests.objects.sparks import IN_A_SESSION

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

WHOLE = (Slice(index=1, label="all", first="", end="", rows=6, bytes=6),)
ODD = RowCheck(name="n is even", severity="warn", failing="n % 2 = 1", keys=("n",))
BIG = RowCheck(name="n is small", severity="stop", failing="n > 4", keys=("n",))


@pytest.fixture
def spark(connect: ConnectServer, warehouse: ObjectPath, proxy: Proxy) -> ConnectHandle:
    agent(warehouse, proxy)
    return ConnectHandle(Settings(region="us", remote=connect.url, conf=IN_A_SESSION), str(warehouse))


def history(session: Any, warehouse: ObjectPath, sql: str, *checks: RowCheck) -> backfill.History:
    """Of a landing table of six rows in two commits; a third one came behind the fence."""
    source = foreign(warehouse / "landing", rows(1, 2, 3), rows(4, 5, 6), rows(7))
    target = replace(state("copy"), checks=checks)
    path = str(warehouse / "copy" / "c0-1")
    schema = session.sql("SELECT CAST(1 AS BIGINT) AS n, DATE'2026-11-01' AS day").schema.json()
    commits.create(path, Schema.from_json(schema), ["day"], {}, "")
    step: Any = SimpleNamespace(
        id="backfill/copy", source="landing", target="copy", sql=sql, time="", stored=False, fragile=None
    )
    return backfill.History(
        step=step, source=state("landing", COLUMNS, kind="landing"), source_path=source, target=target, target_path=path,
        fence=1, slices=WHOLE, writer=commit.open_feed(session, "history/copy", path, 0),
    )  # fmt: skip


def test_a_batch_is_one_commit_of_the_rows_at_its_fence_and_what_it_has_read_and_warned_of_is_counted(
    spark: ConnectHandle, warehouse: ObjectPath
) -> None:
    """The query leaves rows out, so files that were written do not tell what was read."""
    session = spark.build_session()
    whole = history(session, warehouse, "SELECT n, day FROM landing WHERE n < 6", ODD)
    result = backfill.run_batch(spark, session, whole, WHOLE, lambda _: None)
    assert column_values(whole.target_path) == [1, 2, 3, 4, 5]
    assert (result.rows_in, result.written.rows, result.warnings) == (6, 5, ("3 rows fail `n is even`",))
    table = DeltaTable(whole.target_path)
    assert table.transaction_version("history/copy") == whole.writer.epoch << app_ids.EPOCH_BITS | 1
    assert all("/attempt-" in uri for uri in table.file_uris())


def test_a_batch_with_a_row_that_is_not_as_expected_ends_without_a_commit(
    spark: ConnectHandle, warehouse: ObjectPath
) -> None:
    session = spark.build_session()
    whole = history(session, warehouse, "SELECT n, day FROM landing", BIG)
    version = DeltaTable(whole.target_path).version()
    with pytest.raises(Exception, match="UNEXPECTED_ROW") as broken:
        backfill.run_batch(spark, session, whole, WHOLE, lambda _: None)
    assert guard.refused(broken.value)
    assert DeltaTable(whole.target_path).version() == version


def test_a_recorded_call_is_answered_by_both_releases_and_its_cost_is_unknown(
    spark: ConnectHandle, warehouse: ObjectPath
) -> None:
    """Two releases whose tables have one name; the call has a parameter."""
    releases = []
    for name, numbers in (("old", (1, 2)), ("new", (1, 3))):
        foreign(warehouse / name, rows(*numbers))
        known = state("copy")
        at = replace(known, version=replace(known.version, path=name))
        releases.append(Release(id=name, pipeline="web", digest="d", tables=(at,), feeds=()))
    context: Any = SimpleNamespace(
        spark=spark, recorder=SimpleNamespace(rollout="web-1"), path=lambda path: str(warehouse / path), job=None,
        check_halt=lambda: None, jobs=lambda *_: nullcontext(),
    )  # fmt: skip
    live, new = (
        CalledRelease(session=spark.session(), release=release, context=context, pins={}) for release in releases
    )
    for most, same in (("1", True), ("2", False)):
        query = CallQuery("SELECT n FROM copy WHERE n <= :most", ("copy",), (("most", most, "int"),))
        call = PlannedCall(endpoint="few", name=most, new=query, live=query, form=AnswerForm())
        answered = replay(context, call, live, new)
        assert (answered.same, answered.rows_live, answered.rows_new) == (same, int(most), 1)
        assert (answered.same_cost, "does not tell" in answered.why_cost) == (None, True)
