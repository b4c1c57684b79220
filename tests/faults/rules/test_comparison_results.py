"""Verdicts of a comparison on given figures, and of a compaction on the totals that it reads back. No Java."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.compared import comparison
from console.agent.compared.checks import columns_check
from console.agent.maintenance import compaction as compacting
from console.agent.maintenance.compaction import Crowd, compact
from console.agent.store import log
from console.errors import RegionError
from console.model.event import ComparedDay
from console.model.step import Comparison, Pair
from tests.faults.rules.tables import SCHEMA, foreign, rows

pytestmark = pytest.mark.slow

PAIRS = tuple(Pair(f"old_{name}", name) for name in "abcdefgh")


def verdict(count: int, *differing: str, left_out: tuple[tuple[str, str], ...] = ()) -> str:
    plan = Comparison(table="copy", pairs=PAIRS[:count], left_out=left_out)
    days = [ComparedDay(day=f"2026-11-{day:02}", old=5, new=5, columns=differing) for day in (1, 2)]
    check = columns_check(plan, days, ())
    assert check.ok is not bool(differing)
    return check.detail


def test_equal_columns_are_named_up_to_six_and_the_others_counted() -> None:
    assert verdict(1) == "1 equal by checksum: a"
    assert verdict(6) == "6 equal by checksum: a, b, c, d, e, f"
    assert verdict(7) == "7 equal by checksum: a, b, c, d, e, f and 1 more"
    assert verdict(8, left_out=(("x", "its expression changed"),)) == (
        "8 equal by checksum: a, b, c, d, e, f and 2 more; left out: x (its expression changed)"
    )
    new = (("agent", "agent is new"), ("x", "its expression changed"), ("is_bot", "is_bot is new"))
    assert (
        verdict(1, left_out=new) == "1 equal by checksum: a; left out: agent, is_bot (new); x (its expression changed)"
    )
    assert verdict(2, "b") == "differ: b on 2026-11-01, 2026-11-02"


def test_a_column_goes_by_the_name_that_it_had_and_one_that_is_not_compared_by_its_own() -> None:
    plan = Comparison(table="copy", pairs=PAIRS[:4])
    assert [plan.old_name(name) for name in ("a", "b", "d", "day")] == ["old_a", "old_b", "old_d", "day"]


@pytest.mark.parametrize(
    ("estimates", "differing", "detail"),
    [
        (0, {}, "3 equal"),
        (1, {}, "2 equal, 1 estimates within 10%"),
        (3, {}, "0 equal, 3 estimates within 10%"),
        (1, {1: 2000}, "differ: b: 2,000 groups"),
        (0, {0: 1, 2: 7}, "differ: a: 1 groups; c: 7 groups"),
    ],
)
def test_values_are_counted_apart_from_estimates(
    monkeypatch: pytest.MonkeyPatch, estimates: int, differing: dict[int, int], detail: str
) -> None:
    monkeypatch.setattr(comparison, "TOLERANCE", 0.1)
    plan, values = Comparison(table="copy", pairs=PAIRS[:3], keys=("k",)), list(PAIRS[:3])
    check = comparison._values(plan, values, values[:estimates], {f"d{i}": differing.get(i, 0) for i in range(3)})
    assert (check.ok, check.detail) == (not differing, detail)


# -- a compaction


class Compacting:
    """What stands in for a partition's rows and their writer: it notes in how many tasks, and commits as Spark does."""

    def __init__(self, table: str) -> None:
        self.table, self.tasks, self.settings = table, list[int](), dict[str, str]()
        self.read = self.write = self

    def itself(self, *_: Any) -> "Compacting":
        return self

    format = mode = load = where = itself

    def coalesce(self, tasks: int) -> "Compacting":
        self.tasks.append(tasks)
        return self

    def option(self, name: str, value: str) -> "Compacting":
        self.settings[name] = value
        return self

    def save(self, _: str) -> None:
        note = CommitProperties(custom_metadata={"userMetadata": self.settings["userMetadata"]})
        write_deltalake(self.table, rows(), mode="append", commit_properties=note, partition_by=["day"])


MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "most", "tasks"),
    [(0, 9, 1), (1, 9, 1), (128 * MIB - 1, 9, 1), (128 * MIB, 9, 2), (300 * MIB, 9, 3), (1 << 33, 9, 9), (1 << 33, 1, 1), (1, 0, 1)],
)  # fmt: skip
def test_files_of_a_good_size_are_written_by_as_many_tasks_as_are_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, most: int, tasks: int
) -> None:
    table = foreign(tmp_path / "copy", rows(1), rows(2))
    monkeypatch.setattr(compacting, "_totals", lambda *_: (2, 7))
    session: Any = Compacting(table)
    done = compact(session, table, Crowd((("day", "2026-11-01"),), 2, 2, size), most)
    assert session.tasks == [tasks]
    assert session.settings["replaceWhere"] == "`day` = '2026-11-01'"
    assert json.loads(session.settings["userMetadata"]) == {
        "kind": "compact",
        "partition": "day=2026-11-01",
        "files": 2,
    }
    assert (done.version, done.files) == (2, 2)
    assert log.commit(table, 2).note["kind"] == "compact"


@pytest.mark.parametrize("now", [(2, 7), (1, 7), (2, 8), ()])
def test_rows_behind_a_compaction_are_held_against_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: tuple[int, ...]
) -> None:
    table = str(tmp_path / "copy")
    DeltaTable.create(table, schema=SCHEMA, partition_by=["day"])
    for n in range(4):
        write_deltalake(table, rows(n), mode="append", partition_by=["day"])
    asked: list[int] = []

    def totals(_: Any, __: str, where: str, version: int, *_more: Any) -> tuple[int, ...]:
        asked.append(version)
        return now if version == 5 else (2, 7)

    monkeypatch.setattr(compacting, "_totals", totals)
    if now == (2, 7):
        compact(Compacting(table), table, Crowd((), 4, 4, 1))
    else:
        with pytest.raises(RegionError) as refused:
            compact(Compacting(table), table, Crowd((), 4, 4, 1))
        assert refused.value.code == "E_COMPACTION"
        assert f"compaction in version 5 changed the table: (2, 7) is now {now}" in str(refused.value)
        assert refused.value.hint == "stop the agent, RESTORE the table to version 4 and report this"
    assert asked == [4, 5]
