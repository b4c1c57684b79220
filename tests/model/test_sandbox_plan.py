"""The parts of a change that a sandbox builds, and the versions with which the rollout may continue."""

from dataclasses import replace
from typing import Literal

import pytest

from console.errors import DataError
from console.model.live import Day, Feed, Relay, Release, TableState, Version
from console.model.plan import Plan, numbered
from console.model.sandbox import SandboxOrder, check_name
from console.model.sandbox_plan import (
    cannot_preview,
    carried_slices,
    continuable,
    continued,
    described,
    own_paths,
    sandboxed,
)
from console.model.schema import Column, Table
from console.model.slices import EARLY, LATE, cut
from console.model.status import Status
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Promote, Step, Validate
from console.model.step_status import StepStatus
from tests.plans import bare_plan

COLUMNS = (Column(name="id", type="string"), Column(name="ts", type="timestamp"))


def state(name: str, path: str = "", kind: Literal["append", "landing"] = "append") -> TableState:
    table = Table(name=name, kind=kind, columns=COLUMNS, time="ts")
    version = Version(content=f"c-{name}", path=path, columns=COLUMNS)
    return TableState(table=table, version=version, read="SELECT * FROM stored", rows="r", values={})


def feed(source: str, target: str, *joins: str) -> Feed:
    return Feed(materialization=f"to_{target}", source=source, target=target, sql="SELECT 1", joins=joins)


def replayed(source: str, target: str, rows: int = 10) -> Backfill:
    return Backfill(
        materialization=f"to_{target}",
        source=source,
        target=target,
        route="replay",
        sql="SELECT 1",
        time="ts",
        rows=rows,
        bytes=rows * 9,
        days=3,
        batches=1,
    )


def plan(*, joins: tuple[str, ...] = (), rows: int = 10, steps: tuple[Step, ...] = ()) -> Plan:
    """events → requests → seen, both rebuilt, beside `kept`, which is not."""
    tables = (state("events", "events", "landing"), state("kept", "kept/k-1"), state("requests"), state("seen"))
    feeds = (feed("events", "requests", *joins), feed("requests", "seen"), feed("events", "kept"))
    release = Release(id="", pipeline="web", digest="d", tables=tables, feeds=feeds)
    return bare_plan(
        live="r1",
        release=release,
        steps=(
            *steps,
            CreateTable("requests"),
            CreateTable("seen"),
            replayed("events", "requests", rows),
            CatchUp("to_requests", "events", "requests", "fence"),
            CatchUp("to_seen", "requests", "seen", "log"),
            Validate(()),
            Promote(),
        ),
    )


def test_a_sandbox_has_versions_of_its_own_for_what_is_rebuilt_and_ends_before_the_validation() -> None:
    built = sandboxed(plan(), "fix", "p12", ())
    paths = {each.table.name: each.version.path for each in built.release.tables}
    assert (paths["events"], paths["kept"]) == ("events", "kept/k-1")
    assert built.release.id == "fix"
    assert own_paths(built) == {paths["requests"], paths["seen"]}
    assert all(path.endswith("-p12") for path in own_paths(built))
    assert [step.id for step in built.steps] == [
        "create/requests", "create/seen", "backfill/requests/to_requests", "catch-up/seen/to_seen",
    ]  # fmt: skip


def test_the_rollout_of_the_same_plan_takes_the_versions_over_whatever_its_estimates_say_by_now() -> None:
    sandbox, later = sandboxed(plan(), "fix", "p12", ()), plan(rows=99)
    tables = continuable(sandbox, later)
    assert tables == ("requests", "seen")
    rolled = numbered(continued(sandbox, later, tables), 7)
    assert own_paths(rolled) == own_paths(sandbox)
    faster = replace(later, day_rows=5)  # its rate was measured since
    assert continuable(sandbox, faster) == tables
    assert continued(sandbox, faster, tables).heavy_rows == sandbox.heavy_rows
    assert rolled.release.id == "r7"


def test_another_change_another_live_release_or_other_slices_are_built_anew() -> None:
    sandbox = sandboxed(plan(), "fix", "p12", ())
    same = plan()
    other = state("requests")
    wider = replace(other, version=replace(other.version, content="else"))
    tables = tuple(wider if each.table.name == "requests" else each for each in same.release.tables)
    assert continuable(sandbox, replace(same, desired="other")) == ()
    assert continuable(sandbox, replace(same, live="r2")) == ()
    assert continuable(sandbox, replace(same, rows_limit=5)) == ()
    assert continuable(sandbox, replace(same, bytes_limit=5)) == ()
    assert continuable(sandbox, replace(same, release=replace(same.release, tables=tables))) == ()


def test_a_table_that_joins_a_rebuilt_one_is_built_anew_with_all_below_it() -> None:
    """Its rows were joined with those of a few days: gone on with, the others would be missing for good."""
    joined = plan(joins=("seen",))
    assert continuable(sandboxed(joined, "fix", "p12", ()), joined) == ()
    pinned = plan(joins=("kept",))
    assert continuable(sandboxed(pinned, "fix", "p12", ()), pinned) == ("requests", "seen")


def test_what_needs_another_landing_table_than_live_s_cannot_be_previewed() -> None:
    assert cannot_preview(plan()) == ""
    added = plan(steps=(AddColumns("events", COLUMNS),))
    assert cannot_preview(added) == ""
    assert (
        sandboxed(added, "fix", "p12", ()).steps == sandboxed(plan(), "fix", "p12", ()).steps
    )  # live's is not altered
    assert cannot_preview(replace(plan(), live="")) == ""
    missing = replace(plan(steps=(CreateTable("events"),)), live="")
    assert (
        cannot_preview(missing) == "the landing table events does not exist yet, so there are no rows to build it from"
    )
    relay = Relay(table="events", older="events", forward="", backward="", columns=())
    assert (
        cannot_preview(replace(plan(), release=replace(plan().release, relays=(relay,)))) == ""
    )  # a version beside it


@pytest.mark.parametrize(
    ("names", "days", "labels"),
    [
        (["2026-11-01", "2026-11-02", "2026-11-03"], 1, ["2026-11-03"]),
        (["2026-11-01", "2026-11-02", "2026-11-03"], 2, ["2026-11-03", "2026-11-02"]),
        (["2026-11-01", "2026-11-02", LATE], 1, [LATE, "2026-11-02"]),
        (["2026-11-01"], 3, ["2026-11-01", "no day"]),
        (["2026-11-01"], 1, ["2026-11-01"]),
        ([EARLY, "2026-11-01", ""], 1, ["2026-11-01"]),
        ([], 1, ["all"]),
    ],
)
def test_the_newest_days_are_carried_with_what_is_newer(names: list[str], days: int, labels: list[str]) -> None:
    slices = cut([Day(name, 5, 50) for name in names])
    carried = carried_slices(slices, days)
    assert carried == slices[: len(carried)]
    assert [piece.label for piece in carried] == labels


def test_a_heavy_day_is_carried_whole_though_it_is_cut_into_hours() -> None:
    slices = cut([Day("2026-11-01", 90, 900), Day("2026-11-02", 90, 900)], rows_limit=10)
    assert len(carried_slices(slices, 1)) == 24
    assert len(carried_slices(slices, 2)) == len(slices) - 1


def test_one_beside_no_release_says_so_and_what_is_live_by_now() -> None:
    order = SandboxOrder(name="fix", days=1, at=0.0, expires=7200.0, by="ada", host="laptop")
    shown = described(order, sandboxed(replace(plan(), live=""), "fix", "p12", ()), Status(), frozenset())
    assert shown.text("", 0.0) == "preview fix: building, 1 day, beside no release; dropped in 2 h"
    assert (
        shown.text("r1", 0.0) == "preview fix: building, 1 day, beside no release, and r1 is live now; dropped in 2 h"
    )
    assert "beside r1, and r2 is live now" in replace(shown, live="r1").text("r2", 0.0)


def test_what_is_shown_follows_from_the_events_and_from_who_else_names_its_versions() -> None:
    order = SandboxOrder(name="fix", days=1, at=1.0, expires=9.0, by="ada", host="laptop")
    built = sandboxed(plan(), "fix", "p12", ())
    one = StepStatus(id="backfill/requests/to_requests", state="done", slices_done=2, slices=5, bytes=70)
    done = Status(state="catching-up", steps=(one,))
    shown = described(order, built, done, frozenset())
    assert (shown.state, shown.slices, shown.of, shown.bytes) == ("ready", 2, 5, 70)
    assert (
        described(order, built, replace(done, steps=(replace(one, state="running"),)), frozenset()).state == "building"
    )
    assert described(order, built, done, own_paths(built)).state == "adopted"
    failed = described(order, built, replace(done, held="failed", why="disk full", hint="console retry"), frozenset())
    assert (failed.state, failed.why) == ("failed", "disk full")
    assert "--drop fix" in failed.hint
    still = described(order, replace(built, steps=()), Status(state="planned"), frozenset())
    assert still.state == "ready"


@pytest.mark.parametrize("name", ["", "r7", "live", "previous", "a b", "../x", "x" * 41, "-x", "a/b"])
def test_a_name_is_no_path_and_no_release(name: str) -> None:
    with pytest.raises(DataError) as refused:
        check_name(name)
    assert refused.value.code == "E_PREVIEW_NAME"
    assert check_name("feature-12_b") == "feature-12_b"
