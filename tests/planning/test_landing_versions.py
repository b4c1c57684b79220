"""A managed landing table with another partitioning: a new version, and no moved row in the tables below."""

from dataclasses import replace
from typing import Any

import pytest

from console.model.codec import dumps
from console.model.live import Intake, Live
from console.model.plan import Plan
from console.model.schema import Column
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Promote, Validate
from tests.planning.test_landing_changes import N, landing, refused, renamed, state, wanted
from tests.planning.world import LANDING, actions, live, node, pipeline, planned, promoted, release, with_table

BY_REGION: dict[str, Any] = {"partition_by": ("region",)}


def relay(done: Plan) -> Any:
    (only,) = done.release.relays
    return only


def region() -> Live:
    return promoted(planned(wanted(columns=N)), live())


def test_another_partitioning_copies_the_table_and_moves_the_feeds_below() -> None:
    done = planned(wanted(**BY_REGION))
    assert (actions(done), done.refusals) == ({"landing": "forward", "requests": "rebind"}, ())
    assert (
        node(done, "landing").why
        == "partitioned by region instead of not at all: the same rows, copied from the live landing"
    )
    assert node(done, "landing").price.rows == 14_000
    assert node(done, "requests").price.rows == 0
    create, backfill, catch_up, validate, promote = done.steps
    assert (create, catch_up, promote) == (
        CreateTable("landing"), CatchUp("relay", "landing", "landing", "fence"), Promote()
    )  # fmt: skip
    assert isinstance(backfill, Backfill)
    assert (backfill.sql, backfill.stored) == ("SELECT `id`, `region`, `ts`, `payload` FROM `landing`", True)
    assert isinstance(validate, Validate)
    assert [pair.new for pair in validate.comparisons[0].pairs] == ["id", "region", "ts", "payload"]
    assert done.rollback.lossless


def test_rows_pass_between_the_versions_as_they_are_stored() -> None:
    done = planned(wanted(**BY_REGION))
    same = "SELECT `id`, `region`, `ts`, `payload` FROM `landing`"
    assert (relay(done).older, relay(done).forward, relay(done).backward) == ("landing", same, same)
    assert (relay(done).lost, relay(done).stored_alike) == ((), True)
    assert all(feed.moved for feed in done.release.feeds if feed.source == "landing")


def test_the_new_version_lies_beside_the_folder_of_the_old_one_and_later_plans_find_it_there() -> None:
    done = planned(wanted(**BY_REGION))
    after = promoted(done, live())
    new = release(after).table("landing")
    assert new is not None
    assert new.version.path.startswith("landing.versions/")
    assert new.version.partition_by == ("region",)
    assert actions(planned(wanted(**BY_REGION), after)) == {}
    later = planned(wanted(columns=N, **BY_REGION), after)
    assert (actions(later), later.release.relays) == ({"landing": "metadata"}, ())
    assert state(later).version.path == new.version.path


def test_it_may_be_partitioned_otherwise_again_and_back() -> None:
    after = promoted(planned(wanted(**BY_REGION)), live())
    back = planned(wanted(), after)
    assert actions(back) == {"landing": "forward", "requests": "rebind"}
    assert relay(back).older == state(planned(wanted(**BY_REGION), after)).version.path


@pytest.mark.slow
def test_a_rename_in_the_same_plan_goes_along_and_moves_no_row_below() -> None:
    done = planned(
        replace(
            renamed(),
            tables=tuple(replace(t, partition_by=("zone",)) if t.name == "landing" else t for t in renamed().tables),
        )
    )
    assert (actions(done), done.refusals) == ({"landing": "forward", "requests": "rebind"}, ())
    assert node(done, "landing").why == (
        "partitioned by zone instead of not at all; region becomes zone: the same rows, copied from the live landing"
    )
    assert state(done).version.partition_by == ("region",)
    assert Intake("zone", ("region",)) in state(done).intake


def test_a_wider_type_in_the_same_plan_is_a_second_column_of_both_versions() -> None:
    wide = (*LANDING.columns, Column(name="n", type="bigint"))
    done = planned(wanted(columns=wide, **BY_REGION), region())
    extra = Column(name="n@bigint", type="bigint")
    assert AddColumns("landing", (extra,)) in done.steps
    assert (state(done).version.columns[-1], relay(done).columns[-1]) == (extra, extra)
    assert "`n@bigint`" in relay(done).backward
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert "CAST(NULL AS BIGINT) AS `n@bigint`" in backfill.sql
    assert done.rollback.columns == ("landing.n",)


def test_an_older_agent_refuses_a_release_of_which_it_would_not_move_the_rows() -> None:
    assert '"relays!0.2.0"' in dumps(planned(wanted(**BY_REGION)).release)
    assert "relays" not in dumps(planned(wanted()).release)


@pytest.mark.parametrize(
    ("more", "by", "why"),
    [
        (Column(name="day", type="date"), "day", "no row has day yet: promote the new column first"),
        (Column(name="n", type="double"), "n", "n is a double: ingested values would be stored under other names"),
    ],
)
def test_a_partitioning_that_no_row_tells_is_refused(more: Column, by: str, why: str) -> None:
    columns = (*LANDING.columns, more)
    start = live() if by == "day" else promoted(planned(wanted(columns=columns)), live())
    problem = refused(wanted(columns=columns, partition_by=(by,)), start)
    assert (problem.code, why in problem.message) == ("C131", True)
    assert "drop `partition_by`" in problem.hint


def test_a_column_that_lies_in_two_is_no_partition() -> None:
    wide = (*LANDING.columns, Column(name="n", type="bigint"))
    after = promoted(planned(wanted(columns=wide), region()), region())
    problem = refused(wanted(columns=wide, partition_by=("n",)), after)
    assert (problem.code, "values of n are in several stored columns" in problem.message) == ("C131", True)


def test_another_name_and_another_partitioning_take_two_plans() -> None:
    moved = with_table(pipeline(), landing(name="events", was="landing", **BY_REGION))
    moved = replace(moved, tables=tuple(table for table in moved.tables if table.name != "landing"))
    problem = refused(with_parse(moved), live())
    assert (problem.code, "promote that first" in problem.message) == ("C131", True)


def with_parse(desired: Any) -> Any:
    nodes = tuple(replace(m, sql=m.sql.replace("FROM landing", "FROM events")) for m in desired.materializations)
    return replace(desired, materializations=nodes)


CODE = (*LANDING.columns, Column(name="code", type="string"))
NUMBER = (*LANDING.columns, Column(name="code", type="int"))
TO_NUMBER = "* EXCEPT (code), CAST(code AS INT) AS code"


def with_code() -> Live:
    return promoted(planned(wanted(columns=CODE)), live())


@pytest.mark.slow
def test_a_type_that_may_not_convert_is_computed_once_for_every_row() -> None:
    done = planned(wanted(columns=NUMBER, forward_query=TO_NUMBER), with_code())
    assert (actions(done), done.refusals) == ({"landing": "forward", "requests": "rebind"}, ())
    assert node(done, "landing").why == "code is computed by its forward_query: copied from the live landing"
    (backfill,) = (step for step in done.steps if isinstance(step, Backfill))
    assert "CAST(`landing`.`code` AS INT)" in backfill.sql
    assert not backfill.stored
    assert backfill.fragile is not None  # so that rows that do not convert may be quarantined
    assert (state(done).read, state(done).intake) == ("SELECT `id`, `region`, `ts`, `payload`, `code` FROM stored", ())
    assert (relay(done).keys, relay(done).stored_alike) == (("code",), False)


@pytest.mark.slow
def test_values_go_back_by_the_cast_that_keeps_them_all() -> None:
    done = planned(wanted(columns=NUMBER, forward_query=TO_NUMBER), with_code())
    assert "CAST(`code` AS STRING)" in relay(done).backward
    assert relay(done).backward.endswith(
        "FROM (SELECT `id`, `region`, `ts`, `payload`, `code` FROM `landing`) AS `landing`"
    )
    assert (relay(done).lost, done.rollback.lossless) == ((), True)


@pytest.mark.slow
def test_the_operator_says_how_other_values_go_back() -> None:
    back = "* EXCEPT (code), coalesce(CAST(code AS STRING), 'none') AS code"
    done = planned(wanted(columns=NUMBER, forward_query=TO_NUMBER, backward_query=back), with_code())
    assert "COALESCE(CAST(`landing`.`code` AS STRING), 'none')" in relay(done).backward
    assert (relay(done).lost, done.rollback.columns) == (("code",), ("landing.code",))
    assert done.rollback.why == "what code of landing cannot hold is NULL or the default there"


@pytest.mark.slow
def test_a_way_back_that_may_fail_is_refused() -> None:
    back = "* EXCEPT (code), CAST(1 / code AS STRING) AS code"
    problem = refused(wanted(columns=NUMBER, forward_query=TO_NUMBER, backward_query=back), with_code())
    assert (problem.code, "code may fail for a row" in problem.message) == ("C130", True)
    missing = refused(wanted(columns=NUMBER, forward_query=TO_NUMBER, backward_query="id, region, ts"), with_code())
    assert (missing.code, missing.message.startswith("backward_query of landing")) == ("C106", True)


@pytest.mark.slow
def test_a_value_that_cannot_go_back_is_null_there_and_named() -> None:
    wide = (*LANDING.columns, Column(name="n", type="bigint"), Column(name="code", type="int"))
    narrow = (*LANDING.columns, Column(name="n", type="int"), Column(name="code", type="string"))
    start = promoted(planned(wanted(columns=narrow)), live())
    done = planned(wanted(columns=wide, forward_query="* EXCEPT (code), CAST(code AS INT) AS code"), start)
    assert "TRY_CAST(`n` AS INT)" in relay(done).backward
    assert done.rollback.columns == ("landing.n",)


@pytest.mark.slow
def test_a_day_that_no_row_has_is_computed_and_the_table_partitioned_by_it() -> None:
    more = (*LANDING.columns, Column(name="day", type="date"))
    done = planned(wanted(columns=more, forward_query="*, to_date(ts) AS day", partition_by=("day",)))
    assert (actions(done), done.refusals) == ({"landing": "forward", "requests": "rebind"}, ())
    assert node(done, "landing").why == (
        "day is computed by its forward_query; partitioned by day instead of not at all: copied from the live landing"
    )
    assert (state(done).version.partition_by, relay(done).keys) == (("day",), ("day",))
    assert relay(done).lost == ("day",)  # what lines give for it, the older version cannot hold
    assert done.rollback.lossless


@pytest.mark.slow
def test_a_line_that_could_be_of_either_shape_asks_for_another_name() -> None:
    query = "* EXCEPT (code), CAST(coalesce(code, '0') AS INT) AS code"
    problem = refused(wanted(columns=NUMBER, forward_query=query), with_code())
    assert (problem.code, "gives NULL for it could be of either shape" in problem.message) == ("C130", True)


def test_a_way_back_without_a_way_forth_warns() -> None:
    done = planned(wanted(columns=N, backward_query="*"))
    assert [(p.code, p.severity) for p in done.problems] == [("C108", "warn")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "start", "why"),
    [
        (BY_REGION, live(), "a Delta table has one partitioning"),
        ({"columns": NUMBER, "forward_query": TO_NUMBER}, with_code(), "have no value of code"),
    ],
)
def test_the_price_of_a_new_version_is_shown_beside_the_reason_against_from_now(
    changes: dict[str, Any], start: Live, why: str
) -> None:
    every, from_now = node(planned(wanted(**changes), start), "landing").options
    assert (every.history, every.chosen, every.price.rows) == ("all", True, 14_000)
    assert (from_now.history, why in from_now.impossible) == ("from now", True)
    problem = refused(wanted(**changes, history="from now"), start)
    assert (problem.code, why in problem.message) == ("C140", True)
    assert problem.hint.startswith("drop `history`")


@pytest.mark.slow
def test_values_that_are_computed_at_read_move_no_row() -> None:
    """What the refusal of `from now` names beside the new version."""
    tried = planned(wanted(columns=NUMBER, forward_query=TO_NUMBER.replace("CAST", "try_cast")), with_code())
    assert (actions(tried)["landing"], node(tried, "landing").price.rows, tried.refusals) == ("metadata", 0, ())
