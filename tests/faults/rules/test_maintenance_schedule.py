"""When a region compacts by itself, and which tables: the real maintainer over real releases, with a manual clock. No Java."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable

from console.agent.maintenance import maintainer
from console.agent.maintenance.compaction import Compacted, Crowd, crowded
from console.agent.pipeline import PipelineController
from console.errors import ConsoleError, DataError
from console.model.event import Accepted, Ended, Entered
from console.model.live import Release, TableState
from console.model.step import Promote
from tests.faults.rules.tables import SCHEMA, foreign, rows, state
from tests.faults.rules.test_maintainer import moved, opened
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

HOUR = 3600.0


def pipeline(place: Path, *tables: str) -> PipelineController:
    """A live release of our own tables, each of four small files of one day."""
    for name in tables:
        DeltaTable.create(str(place / name), schema=SCHEMA, partition_by=["day"])
        foreign(place / name, *(rows(n) for n in range(4)))
    controller = opened(place)
    states = tuple(moved(state(name), name) for name in tables)
    controller.releases.propose(
        Release(id="r1", pipeline=place.name, digest="d", tables=states, feeds=()), "web-1", "ada", "laptop"
    )
    controller.releases.swap("", "r1", "ada", "laptop")
    return controller


def begins(controller: PipelineController) -> None:
    """A rollout is under way from now on."""
    live = controller.live()
    plan = bare_plan(live="r1", steps=(Promote(),), release=live)
    controller.recorder.accept(
        "web-2", plan, Accepted(release="r2", was="r1", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
    )
    controller.recorder.store(Entered("backfilling"))


class MaintenanceSetup:
    """A maintainer of some pipelines, and the tables that it compacts; `failures` are raised by a table's compaction."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *controllers: PipelineController) -> None:
        self.now, self.controllers = 5000.5, controllers
        self.spark = SimpleNamespace(
            asleep_since=0.0, build_tasks=1, session=lambda **_: None, build_session=lambda: None
        )
        self.compacted: list[str] = []
        self.reports: list[tuple[str, str, str]] = []
        self.failures: dict[str, Exception] = {}
        monkeypatch.setattr(maintainer, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(maintainer, "compact", self._compact)
        monkeypatch.setattr(maintainer, "crowded", lambda table, many: crowded(table, 4))
        self.maintainer = maintainer.Maintainer(
            cast(Any, self.spark), lambda: self.controllers, lambda *each: self.reports.append(each)
        )

    def _compact(self, session: Any, table: str, crowd: Crowd, tasks: int, state: TableState) -> Compacted:
        name = Path(table).name
        self.compacted.append(name)
        if name in self.failures:
            raise self.failures[name]
        return Compacted(crowd, 1, 4)

    def after(self, seconds: float) -> list[str]:
        """The tables compacted by a tick so much later."""
        self.now += seconds
        self.compacted.clear()
        self.maintainer.tick()
        for thread in threading.enumerate():
            if thread.name == "maintenance":
                thread.join(30)
        return sorted(self.compacted)


def test_tables_are_compacted_once_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = MaintenanceSetup(monkeypatch, pipeline(tmp_path, "a", "b"))
    assert setup.after(0.0) == []
    assert setup.after(HOUR - 0.5) == []
    assert setup.after(0.5) == ["a", "b"]
    assert [(level, text) for _, level, text in setup.reports] == [
        ("info", f"{table}: compacted day=2026-11-01: 4 files to 1 in version 4") for table in ("a", "b")
    ]
    assert setup.after(0.5) == []
    assert setup.after(HOUR - 1.0) == []
    assert setup.after(0.5) == ["a", "b"]
    assert setup.after(5 * HOUR) == ["a", "b"]


def test_a_spark_that_sleeps_is_woken_for_it_after_a_day_and_where_it_starts_what_is_due_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = MaintenanceSetup(monkeypatch, pipeline(tmp_path, "a"))
    setup.spark.asleep_since = 1.0
    assert setup.after(3 * HOUR) == []
    setup.spark.asleep_since = 0.0
    assert setup.after(1.0) == ["a"]
    setup.spark.asleep_since = 1.0
    assert setup.after(23.9 * HOUR) == []
    assert setup.after(0.1 * HOUR) == ["a"]


def test_a_pipeline_under_way_is_left_alone_and_its_neighbours_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, other = pipeline(tmp_path / "busy", "a"), pipeline(tmp_path / "other", "b")
    begins(busy)
    setup = MaintenanceSetup(monkeypatch, busy, other)
    assert setup.after(HOUR) == ["b"]
    busy.recorder.store(Ended("discarded", "ada"))
    assert setup.after(HOUR) == ["a", "b"]


def test_an_hourly_pass_is_left_out_beside_one_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = MaintenanceSetup(monkeypatch, pipeline(tmp_path, "a"))
    with setup.maintainer._busy:
        assert setup.after(HOUR) == []
    assert setup.after(HOUR) == ["a"]
    assert not setup.maintainer._busy.locked()


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        (
            DataError("a: no such partition", hint="console status"),
            "error",
            "maintenance: a: no such partition; console status",
        ),
        (OSError(28, "No space left on device"), "warning", "maintenance: [Errno 28] No space left on device"),
    ],
)
def test_a_failure_of_a_pass_is_reported_and_the_next_hour_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, level: str, text: str
) -> None:
    setup = MaintenanceSetup(monkeypatch, pipeline(tmp_path / "one", "a"), pipeline(tmp_path / "two", "b"))
    setup.failures = {"a": error}
    for _ in range(2):
        assert setup.after(HOUR) == ["a", "b"], "the other pipeline does not suffer for it"
        assert [(severity, message) for _, severity, message in setup.reports if severity != "info"] == [(level, text)]
        setup.reports.clear()
    setup.failures = {}
    assert setup.after(HOUR) == ["a", "b"]
    assert {severity for _, severity, _ in setup.reports} == {"info"}


def test_a_table_that_a_compaction_changed_is_passed_over_and_those_behind_it_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = MaintenanceSetup(monkeypatch, pipeline(tmp_path, "a", "b", "c"))
    setup.maintainer._spoiled[str(tmp_path / "b")] = cast(Any, ConsoleError("changed"))
    assert setup.after(HOUR) == ["a", "c"]
