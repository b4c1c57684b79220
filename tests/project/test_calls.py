"""Recorded calls of endpoints: read with their places, refused if they cannot be run, and appended to the others."""

import pytest
from conftest import Write

from console.errors import DataError, Problem, Problems
from console.model.recorded_call import MOST_OF_ENDPOINT, CallBudget, RecordedCall
from console.project import load
from console.project.pipeline.calls import calls_of, with_call
from console.project.yaml import parse

FILE = "plans/web/endpoints/top.calls.yaml"
CALL = RecordedCall(endpoint="top", name="new one", parameters=(("day", "2026-11-07"), ("path", "/a: b#c")))
WRITTEN = """# calls of the day
calls:
  - name: newest day   # as of Monday
    parameters: {day: 2026-11-07, limit: 5}
    differs: bots are left out
    budget: {files: 20, bytes: 10 MB}
  # the whole of November
  - parameters: {day: "2026-11-01"}
"""


def read(project: Write, text: str) -> tuple[RecordedCall, ...]:
    return load(project({FILE: text})).desired["web", "eu"].calls


def problems(project: Write, text: str, file: str = FILE) -> list[Problem]:
    with pytest.raises(Problems) as refused:
        load(project({file: text}))
    return list(refused.value.problems)


def test_calls_are_read_as_written_and_are_no_part_of_a_digest(project: Write) -> None:
    first, second = read(project, WRITTEN)
    assert (first.name, first.parameters) == ("newest day", (("day", "2026-11-07"), ("limit", "5")))
    assert (first.differs, first.budget) == ("bots are left out", CallBudget(20, 10_000_000))
    assert (second.name, second.parameters, second.budget) == ("call 2", (("day", "2026-11-01"),), CallBudget())
    assert (first.where, second.where) == (f"{FILE}:3:5", f"{FILE}:8:5")
    digest = load(project({FILE: WRITTEN})).desired["web", "eu"].digest()
    assert load(project({FILE: ""})).desired["web", "eu"].digest() == digest


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("calls:\n  - parameters: {dya: 2026-11-01, day: 2026-11-01}\n", "P035", "top has no parameter `dya`"),
        ("calls:\n  - parameters: {day: Monday}\n", "P012", "parameters.day is date: expected a date"),
        ("calls:\n  - {}\n", "P011", "`day` of top is missing"),
        ("calls:\n  - {name: a, parameters: {day: 2026-11-01}}\n" * 1 + "  - {name: a, parameters: {day: 2026-11-02}}\n", "P030", "two calls are named `a`"),
        ("calls:\n  - {parameters: {day: 2026-11-01}, budget: {files: 0}}\n", "P012", "expected a number above 0"),
        ("calls:\n  - {parameters: {day: [2026-11-01]}}\n", "P012", "expected one value"),
        ("call: []\n", "P010", "unknown key `call`"),
        ("calls:\n" + "  - {parameters: {day: 2026-11-01}}\n" * (MOST_OF_ENDPOINT + 1), "P012", "at most 20"),
        ("- {day: 2026-11-01}\n", "P002", "found a list"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_run_is_refused_at_its_place(project: Write, text: str, code: str, message: str) -> None:
    (problem,) = problems(project, text)
    assert (problem.code, problem.where.startswith(f"{FILE}:")) == (code, True)
    assert message in problem.message


def test_calls_of_an_endpoint_that_there_is_not_are_refused(project: Write) -> None:
    (problem,) = problems(project, "calls: []\n", "plans/web/endpoints/tpo.calls.yaml")
    assert (problem.code, problem.hint) == ("P035", "did you mean `top`?")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'calls:\n  - {name: "new one", parameters: {day: 2026-11-07, path: "/a: b#c"}}\n'),
        (WRITTEN, WRITTEN + '  - {name: "new one", parameters: {day: 2026-11-07, path: "/a: b#c"}}\n'),
        (
            "calls:\n- parameters: {day: 2026-11-01}",
            'calls:\n- parameters: {day: 2026-11-01}\n- {name: "new one", parameters: {day: 2026-11-07, path: "/a: b#c"}}\n',
        ),
        ("# none yet\n", '# none yet\ncalls:\n  - {name: "new one", parameters: {day: 2026-11-07, path: "/a: b#c"}}\n'),
    ],
)
def test_a_call_is_written_behind_the_others_and_all_else_stays(before: str, after: str) -> None:
    assert with_call(before, FILE, CALL) == after


@pytest.mark.parametrize("text", ["calls: [{name: a}]\n", "calls: []\n", "calls:\n  - name: a\n...\n"])
def test_a_file_to_which_no_line_can_be_added_is_left_alone(text: str) -> None:
    with pytest.raises(DataError, match="cannot be appended to the others") as refused:
        with_call(text, FILE, CALL)
    assert refused.value.hint


@pytest.mark.parametrize(
    "value", ["null", "~", "0123", "1e3", "yes", 'a"b', "ä\\n", "- x", "", "&a", "*a", "!t", "2026-11-07T10:00:00Z", "x" * 300]
)  # fmt: skip
def test_what_an_operator_gave_is_read_again_to_the_letter(value: str) -> None:
    call = RecordedCall(endpoint="top", name="n", parameters=(("day", value),))
    text = with_call("", FILE, call)
    ((again,), wrong) = calls_of("top", parse(text, FILE))
    assert (again.parameters, wrong) == (call.parameters, [])


def test_a_call_without_a_name_is_called_by_its_number(project: Write) -> None:
    text = with_call(WRITTEN, FILE, RecordedCall(endpoint="top", name="", parameters=(("day", "2026-11-09"),)))
    assert text == WRITTEN + "  - {parameters: {day: 2026-11-09}}\n"
    assert [call.name for call in read(project, text)] == ["newest day", "call 2", "call 3"]
