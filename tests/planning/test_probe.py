"""Probes of the data before a changed type is copied: by the feed's own query, with the result in the plan."""

from dataclasses import replace

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from console.model.plan import Plan
from console.planning import plan
from console.planning.loss.probe import Probe, ProbeResult, probed, probes
from tests.planning.edits import EDITS, MS, Edit, of, parse, requests, typed
from tests.planning.world import CACHE, REGION, REQUESTS

STATUS = "CAST(get_json_object(payload, '$.status') AS INT)"
AS_DATE = Edit(of(requests(columns=typed("status", "date")), parse(STATUS, STATUS.replace("INT", "DATE"))))


def planned(edit: Edit) -> Plan:
    return plan(edit.pipeline(), edit.survey(), REGION, "test", CACHE)


def asked(edit: Edit, *payloads: str | None) -> ProbeResult:
    """The one question of an edit, answered by another engine over landing rows with these payloads."""
    (probe,) = probes(planned(edit))
    db = duckdb.connect()
    db.execute("CREATE TABLE landing (id VARCHAR, region VARCHAR, ts TIMESTAMP, payload VARCHAR)")
    for n, payload in enumerate(payloads):
        db.execute("INSERT INTO landing VALUES (?, 'eu', TIMESTAMP '2026-11-07', ?)", [f"e{n}", payload])

    def rows(sql: str) -> list[tuple[object, ...]]:
        return db.execute(sqlglot.transpile(sql, read="spark", write="duckdb")[0]).fetchall()

    counted = rows(probe.count)
    return ProbeResult(probe, int(str(counted[0][0])), tuple(str(row[0]) for row in rows(probe.keys)))


@pytest.mark.slow
def test_only_values_that_are_there_and_do_not_fit_count() -> None:
    result = asked(AS_DATE, '{"status": "2026-11-07"}', '{"status": "soon"}', "{}", None, '{"status": ""}')
    assert (result.values, result.keys) == (2, ("e1", "e4"))


@pytest.mark.slow
def test_an_example_is_a_key_and_never_the_value() -> None:
    (probe,) = probes(planned(AS_DATE))
    asking = sqlglot.parse_one(probe.keys, read="spark")
    assert isinstance(asking, exp.Select)
    assert asking.named_selects == ["event_id", "ts"]
    assert len(asked(AS_DATE, *['{"status": "x"}'] * 30).keys) == 10


@pytest.mark.slow
def test_what_does_not_convert_refuses_and_what_does_is_no_question_any_more() -> None:
    done = planned(AS_DATE)
    (probe,) = probes(done)
    assert [(p.code, p.severity) for p in done.problems if p.code == "C103"] == [("C103", "warn")]
    good = probed(done, [ProbeResult(probe, 0)])
    assert [(p.code, p.severity) for p in good.problems if p.code == "C103"] == [("C103", "note")]
    bad = probed(done, [ProbeResult(probe, 2, ("e1", "e4"))])
    assert [(p.code, p.message) for p in bad.refusals] == [
        ("C103", "requests.status: 2 values of its history do not convert to date, at e1; e4")
    ]


@pytest.mark.parametrize("name", ["keep", "replay_new_columns", "forward_proven", "C115_published_numbers"])
def test_nothing_is_asked_where_no_type_changes(name: str) -> None:
    assert probes(planned(EDITS[name])) == ()


BY_QUERY = requests(columns=typed("ms", "float"), forward_query="* EXCEPT (ms), CAST(ms AS FLOAT) AS ms")


@pytest.mark.slow
@pytest.mark.parametrize("edit", [EDITS["C103_narrows"], Edit(BY_QUERY)], ids=["computed", "by a forward_query"])
def test_digits_lost_stay_refused_though_every_value_converts(edit: Edit) -> None:
    done = planned(edit)
    answers = [ProbeResult(probe, 0) for probe in probes(done)]
    assert answers
    assert probed(done, answers).refusals == done.refusals


@pytest.mark.slow
def test_a_careful_conversion_asks_nothing() -> None:
    careful = Edit(
        of(
            requests(columns=typed("status", "date")),
            parse(STATUS, STATUS.replace("CAST", "try_cast").replace("INT", "DATE")),
        )
    )
    assert [probe for probe in probes(planned(careful)) if isinstance(probe, Probe)] == []


@pytest.mark.slow
def test_each_answer_replaces_the_problem_of_its_own_column() -> None:
    columns = tuple(
        replace(column, type="date") if column.name in ("status", "ms") else column for column in REQUESTS.columns
    )
    both = Edit(
        of(
            requests(columns=columns),
            parse(STATUS, STATUS.replace("INT", "DATE")),
            parse(MS, MS.replace("DOUBLE", "DATE")),
        )
    )
    done = planned(both)
    by_column = {probe.column: probe for probe in probes(done)}
    answered = probed(done, [ProbeResult(by_column["ms"], 0), ProbeResult(by_column["status"], 1, ("e1",))])
    assert {(p.message.split(":")[0], p.severity) for p in answered.problems if p.code == "C103"} == {
        ("requests.ms", "note"),
        ("requests.status", "refuse"),
    }
