"""A landing column of which a line's value could be of the older shape or of the newer: refused, until the file distinguishes them."""

from typing import Any

import pytest

from console.model.live import Intake
from console.model.pipeline import Pipeline
from console.model.schema import Accepts, Column
from tests.planning.test_landing_changes import refused, state, wanted
from tests.planning.world import LANDING, actions, live, node, planned, promoted

UPPER = "* EXCEPT (region), upper(region) AS region"
MARK = Column(name="v", type="string")
NAMED = Accepts(shape="v2")


def accepting(accepts: Accepts | None = NAMED, *more: Column, **changes: Any) -> Pipeline:
    query = ", ".join([UPPER, *(f"NULL AS {column.name}" for column in more)])
    return wanted(columns=(*LANDING.columns, *more), forward_query=query, accepts=accepts, **changes)


def test_without_a_word_it_is_refused_with_the_key_that_tells_them_apart() -> None:
    problem = refused(accepting(None))
    assert (problem.code, "lines may still give it" in problem.message) == ("C130", True)
    assert problem.hint.startswith("`accepts: {shape: v2}` which producers then send with their lines (ingest --shape)")


@pytest.mark.slow
@pytest.mark.parametrize(("accepts", "more"), [(NAMED, ()), (Accepts(marker="v"), (MARK,))], ids=["name", "marker"])
def test_told_apart_it_moves_no_row_and_is_computed_again_below(accepts: Accepts, more: tuple[Column, ...]) -> None:
    done = planned(accepting(accepts, *more))
    assert done.refusals == ()
    assert actions(done)["landing"] == "metadata"
    assert actions(done)["requests"] in ("replay", "forward")  # host is its region
    assert Intake("region", ("region@string",)) in state(done).intake
    assert "COALESCE(`region@string`, CAST(UPPER((`region`)) AS STRING)) AS `region`" in state(done).read
    assert Intake("region", ("region",)) in state(done).unmarked
    assert "values of landing.region in lines of the new shape are NULL there" in done.rollback.why


@pytest.mark.slow
def test_it_is_settled_and_keeps_where_older_lines_go() -> None:
    region = promoted(planned(accepting()), live())
    assert actions(planned(accepting(), region)) == {}
    later = planned(accepting(NAMED, Column(name="ext", type="string")), region)
    assert actions(later) == {"landing": "metadata"}
    assert state(later).unmarked == state(planned(accepting())).unmarked


@pytest.mark.slow
def test_a_second_change_needs_another_name() -> None:
    region = promoted(planned(accepting()), live())
    lower = "* EXCEPT (region), lower(region) AS region"
    problem = refused(wanted(forward_query=lower, accepts=NAMED), region)
    assert problem.hint.startswith("`accepts: {shape: v3}`")
    again = planned(wanted(forward_query=lower, accepts=Accepts(shape="v3")), region)
    assert again.refusals == ()
    assert Intake("region", ("region@string",)) in state(again).unmarked


@pytest.mark.slow
@pytest.mark.parametrize("accepts", [None, NAMED], ids=["untold", "told apart"])
def test_what_may_fail_for_a_row_is_refused_without_the_key_that_would_not_help(accepts: Accepts | None) -> None:
    query = "* EXCEPT (region), CAST(CAST(region AS INT) AS STRING) AS region"
    problem = refused(wanted(forward_query=query, accepts=accepts))
    assert problem.code == "C130"
    assert "accepts:" not in problem.hint
    assert "never fails" in problem.message


@pytest.mark.slow
def test_a_marker_that_older_lines_give_too_tells_nothing_apart() -> None:
    assert refused(accepting(Accepts(marker="payload"))).code == "C130"


@pytest.mark.slow
def test_a_type_of_which_lines_look_alike_is_told_apart_too() -> None:
    region = promoted(planned(wanted(columns=(*LANDING.columns, Column(name="at", type="string")))), live())
    retyped = (*LANDING.columns, Column(name="at", type="timestamp"))
    query = "* EXCEPT (at), try_cast(at AS TIMESTAMP) AS at"
    assert refused(wanted(columns=retyped, forward_query=query), region).code == "C130"
    done = planned(wanted(columns=retyped, forward_query=query, accepts=NAMED), region)
    assert (actions(done), done.refusals) == ({"landing": "metadata"}, ())
    assert Intake("at", ("at@timestamp",)) in state(done).intake
    assert "how lines are distinguished" in node(done, "landing").why


@pytest.mark.slow
def test_lines_that_are_no_longer_told_apart_are_warned_of() -> None:
    region = promoted(planned(accepting()), live())
    (messages,) = (problem for problem in planned(wanted(), region).problems if problem.code == "C133")
    assert (messages.severity, "lines of the older shape are then stored as newer ones" in messages.message) == (
        "warn",
        True,
    )
