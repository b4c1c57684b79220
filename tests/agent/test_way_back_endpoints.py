"""When an endpoint of the previous release is asked, and what its silence counts for. The question itself is a double: no Java."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import write_deltalake

from console.agent.way_back import endpoints
from console.agent.way_back.endpoints import EndpointRound
from console.model.live import Release
from console.model.pipeline import Endpoint, Parameter
from console.model.recorded_call import CallQuery, PlannedCall
from console.model.step import Validate
from console.model.way_back import WayBackFinding
from tests.agent.test_gate import release
from tests.faults.rules.tables import foreign, rows
from tests.plans import bare_plan

pytestmark = pytest.mark.slow
BY_DAY = Endpoint(name="by_day", sql="SELECT * FROM copy WHERE day = :day", parameters=(Parameter("day", "date"),))
COUNT = Endpoint(name="count", sql="SELECT count(*) AS n FROM landing")
BROKEN = WayBackFinding(part="endpoint", name="count", state="failed", why="it no longer compiles")


@dataclass
class Asking:
    """A round over two tables on disk; `asked` names each question, `finding` is the answer to all of them."""

    paths: dict[str, str]
    asked: list[str] = field(default_factory=list)
    finding: WayBackFinding | None = None
    took: float = 0.0
    clock: float = 1000.0
    round: EndpointRound = field(
        default_factory=lambda: EndpointRound(cast(Any, SimpleNamespace(started=True, lost=False)))
    )
    release: Release = field(default_factory=lambda: replace(release("r1", "copy"), endpoints=(BY_DAY, COUNT)))

    def answer(self, *args: Any) -> WayBackFinding | None:
        self.asked.append(args[2].name)
        self.clock += self.took
        return self.finding

    def ask(self) -> tuple[WayBackFinding, ...]:
        self.asked.clear()
        return self.round.ask(self.release, self.paths, None)

    def row(self, table: str) -> None:
        write_deltalake(self.paths[table], rows(9), mode="append", partition_by=["day"])


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    made = Asking({name: foreign(tmp_path / name, rows(1)) for name in ("landing", "copy")})
    monkeypatch.setattr(endpoints, "_asked", made.answer)
    clock = SimpleNamespace(monotonic=lambda: made.clock, strftime=time.strftime, gmtime=time.gmtime)
    monkeypatch.setattr(endpoints, "time", clock)
    return made


def test_at_rest_no_endpoint_is_asked_again_and_after_a_row_only_those_that_may_read_it(asking: Asking) -> None:
    assert (asking.ask(), asking.asked) == ((), ["by_day", "count"])
    asking.clock += 3600
    assert (asking.ask(), asking.asked) == ((), [])
    asking.row("landing")
    assert (asking.ask(), asking.asked) == ((), ["count"])


def test_an_endpoint_that_fails_is_tried_twice_and_asked_each_minute_until_it_answers(asking: Asking) -> None:
    asking.finding = BROKEN
    assert (len(asking.ask()), asking.asked) == (2, ["by_day"] * 2 + ["count"] * 2)
    asking.clock += 60
    asking.finding = None
    assert (asking.ask(), sorted(asking.asked)) == ((), ["by_day", "count"])


def test_a_slow_endpoint_takes_no_more_than_its_share(asking: Asking) -> None:
    """Each takes 8 s: the second one waits for the next round, and both for sixty times that."""
    asking.took = 8.0
    asking.release = replace(asking.release, endpoints=(BY_DAY, COUNT, replace(COUNT, name="more")))
    findings = asking.ask()
    assert asking.asked == ["by_day", "count"]
    assert [(finding.name, finding.state, finding.why) for finding in findings] == [
        ("more", "inconclusive", "it has not been called yet")
    ]
    asking.row("landing")
    asking.clock += 60
    assert (asking.ask(), asking.asked) == ((), ["more"])
    asking.clock += 480
    asking.ask()
    assert "count" in asking.asked


def test_with_a_lost_spark_an_endpoint_that_was_never_asked_proves_nothing(asking: Asking) -> None:
    asking.round.spark = cast(Any, SimpleNamespace(started=True, lost=True))
    assert {(finding.state, finding.why) for finding in asking.ask()} == {("inconclusive", "Spark does not run")}
    asking.round.spark = cast(Any, SimpleNamespace(started=True, lost=False))
    assert asking.ask() == ()


def test_a_spark_that_sleeps_is_woken_for_rows_that_no_endpoint_has_answered_over_and_for_no_others(
    asking: Asking,
) -> None:
    asking.round.spark = cast(Any, SimpleNamespace(started=False, lost=False))
    asking.finding = BROKEN
    assert (len(asking.ask()), len(asking.asked)) == (2, 4)
    asking.clock += 3600
    assert (len(asking.ask()), asking.asked) == (2, []), "the findings stand"
    asking.row("landing")
    assert (len(asking.ask()), set(asking.asked)) == (2, {"count"})


def test_arguments_are_those_of_a_recorded_call_of_this_release_else_defaults_else_made_up() -> None:
    old = release("r1", "copy")
    live, new = (CallQuery(BY_DAY.sql, ("copy",), (("day", day, "date"),)) for day in ("2026-11-01", "2026-11-02"))
    call = PlannedCall(endpoint="by_day", name="call 1", new=new, live=live, form=cast(Any, None))
    plan = bare_plan(live="r1", steps=(Validate((), (call,)),), release=release("r2", "copy"))
    arguments: Callable[..., Any] = endpoints._arguments
    assert arguments(old, BY_DAY, plan) == ({"day": ("2026-11-01", "date")}, True)
    assert arguments(plan.release, BY_DAY, plan) == ({"day": ("2026-11-02", "date")}, True)
    assert arguments(replace(old, id="r0"), BY_DAY, plan)[1] is False, "of another rollout"
    with_default = replace(BY_DAY, parameters=(Parameter("day", "date", "2026-11-03"),))
    assert arguments(old, with_default, None) == ({"day": ("2026-11-03", "date")}, True)
    assert arguments(old, COUNT, None) == ({}, True)


@pytest.mark.parametrize(("late", "given", "state"), [(True, True, "inconclusive"), (False, False, "inconclusive")])
def test_what_need_not_be_the_endpoints_own_fault_is_no_failure(*, late: bool, given: bool, state: str) -> None:
    from pyspark.errors import SparkRuntimeException

    assert endpoints._judged(SparkRuntimeException("[CAST_INVALID_INPUT] no"), late=late, given=given)[0] == state
    assert endpoints._judged(SparkRuntimeException("[CAST_INVALID_INPUT] no"), late=False, given=True)[0] == "failed"
    assert endpoints._judged(ConnectionError("the JVM is gone"), late=False, given=True)[0] == "inconclusive"
