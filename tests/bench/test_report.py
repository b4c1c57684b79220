"""The record of measurements and its page: a run replaces its own rows and keeps all others, and a miss is marked and fails nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import page, report
from tests.bench.record import Machine, Record
from tests.bench.report import Measurement, Run, check, write

AT = "2026-11-23 12:00Z"
PAINT = Measurement(what="first picture", figure=1.5, limit=1.6, text="1.50 times an empty app's")
REST = Measurement(what="at rest", figure=0.03, limit=0.02, text="3.0 % of a core")
SPEED = Measurement(what="throughput", figure=0.9, limit=0.95, text="0.90 times", at_least=True)
MACHINE = Machine(name="", cores=2, memory=23.5, cpu="x", java="17", python="3.11", spark="4.2.0", delta="4.4.0")


def run(folder: Path, part: str = "console", commit: str = "abc1234") -> Run:
    return Run(part=part, commit=commit, machine="A", record=str(folder / "benchmarks.jsonl"))


def rows(folder: Path) -> list[str]:
    """Of the page, without commits and times."""
    return [line for line in (folder / "benchmarks.md").read_text().splitlines() if AT in line]


def test_a_row_takes_the_place_of_the_one_that_measured_the_same(tmp_path: Path) -> None:
    write(run(tmp_path), PAINT, AT, 2.0)
    write(run(tmp_path), REST, AT, 3.0)
    write(run(tmp_path, commit="def5678+"), replace(PAINT, figure=1.7, text="1.70 times an empty app's"), AT, 4.04)
    assert rows(tmp_path) == [
        f"| console | at rest | 3.0 % of a core | ≤ 0.02 | **miss** | abc1234 | {AT} | 3.0 | A |",
        f"| console | first picture | 1.70 times an empty app's | ≤ 1.6 | **miss** | def5678+ | {AT} | 4.0 | A |",
    ]


def test_rows_are_grouped_by_what_they_are_goals_of(tmp_path: Path) -> None:
    write(run(tmp_path), PAINT, AT, 2.0)
    write(run(tmp_path, "backfill"), SPEED, AT, 2.0)
    text = (tmp_path / "benchmarks.md").read_text()
    assert text.index("\n## 1. Backfill\n") < text.index("| throughput |") < text.index("\n## 9. The console itself\n")
    assert text.index("\n## 9. The console itself\n") < text.index("| first picture |")
    assert "| ≥ 0.95 | **miss** |" in text


def test_a_figure_at_its_limit_meets_it_from_either_side() -> None:
    assert replace(PAINT, figure=1.6).met is True
    assert replace(PAINT, figure=1.61).met is False
    assert replace(SPEED, figure=0.95).met is True
    assert replace(SPEED, figure=0.94).met is False
    assert replace(PAINT, limit=None).met is None


def test_a_figure_without_a_goal_is_neither_met_nor_a_miss(tmp_path: Path) -> None:
    write(run(tmp_path), replace(PAINT, limit=None), AT, 2.0)
    assert rows(tmp_path) == [
        f"| console | first picture | 1.50 times an empty app's |  |  | abc1234 | {AT} | 2.0 | A |"
    ]


def test_a_miss_is_printed_and_put_on_record_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in run(tmp_path).environment.items():
        monkeypatch.setenv(name, value)
    check(PAINT, SPEED)
    assert "first picture: 1.50 times an empty app's; goal ≤ 1.6\n" in (out := capsys.readouterr().out)
    assert "throughput: 0.90 times; goal ≥ 0.95; miss\n" in out
    record = Record.read(tmp_path / "benchmarks.jsonl")
    assert {what: row.met for what, row in record.rows.items()} == {"first picture": True, "throughput": False}


def test_without_a_run_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(report.VARIABLE, raising=False)
    monkeypatch.setattr(report, "write", lambda *_: pytest.fail("written"))
    check(PAINT)


def test_each_miss_is_explained_below_its_table(tmp_path: Path) -> None:
    write(run(tmp_path), REST, AT, 2.0)
    record = Record.read(tmp_path / "benchmarks.jsonl")
    assert "\n- **miss**, at rest: not explained yet\n" in page.rendered(record, {})
    assert "\n- **miss**, at rest: three JVMs\n" in page.rendered(record, {"at rest": "three JVMs"})


def test_a_machine_is_known_by_what_it_is(tmp_path: Path) -> None:
    record = Record()
    assert [record.on(MACHINE), record.on(replace(MACHINE, cores=4)), record.on(MACHINE)] == ["A", "B", "A"]
    record.write(tmp_path / "record.jsonl")
    again = Record.read(tmp_path / "record.jsonl")
    assert again.on(replace(MACHINE, cores=4)) == "B"
    assert "| B | 4 | 23.5 GiB | x | 17 | 3.11 | 4.2.0 | 4.4.0 |" in page.rendered(again, {})


def test_what_a_part_does_not_measure_any_more_is_forgotten_and_other_parts_are_not(tmp_path: Path) -> None:
    write(run(tmp_path), PAINT, AT, 2.0)
    write(run(tmp_path), REST, AT, 2.0)
    write(run(tmp_path, "backfill"), SPEED, AT, 2.0)
    record = Record.read(tmp_path / "benchmarks.jsonl")
    record.forget_unmeasured("console", frozenset({"at rest"}))
    assert sorted(record.rows) == ["at rest", "throughput"]
