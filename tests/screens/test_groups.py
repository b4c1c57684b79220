"""Groups of equal plans, and tables altered by hand: shown in the list, over the plan and in it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.runner.view import grouped, plan_label
from console.tui.groups import PlanGrouping, draw_groups, plan_title
from console.tui.screens.home import HomeScreen
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle
from tests.screens.moments import moment
from tests.screens.test_drawings import clean, outside

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids="{0[0]}x{0[1]}".format)
async def test_regions_with_equal_plans_are_grouped_and_marked_with_its_name(size: tuple[int, int]) -> None:
    async with running_app(s.ScriptedCockpit(*moment("fleet")), size=size) as (app, pilot):
        text = screen_text(app)
        main, other, odd = (group.label for group in app.state.groups)
        assert f"plan {main} · 5 regions · us, eu, sa, ca, in" in text or size == (80, 24)
        assert f"plan {other} · 2 regions · ap, me · another tables.landing.retention: 3d" in text or size == (80, 24)
        assert f"plan {odd} · 1 region · af · drifted: requests.note" in text or size == (80, 24)
        with_other = [line.strip(" ›").split()[0] for line in text.splitlines()[:12] if other in line]
        assert size != (80, 24) or with_other == ["ap", "me"]
        await pilot.press("j", "j")
        await settle(pilot)
        assert f"plan {other}, the same in me" in screen_text(app)
        await pilot.press("3")
        assert f"plan {other}, the same in me" in screen_text(app)


def test_a_plan_has_the_same_name_wherever_it_is_shown_and_whatever_else_is_planned() -> None:
    views = {view.region.name: view for view in moment("fleet")}
    names = {name: plan_label(view.plan) for name, view in views.items() if view.plan}
    grouping = PlanGrouping()
    assert grouping.labels(views) == names
    assert names["ap"] == names["me"] != names["us"]
    alone = {"ap": views["ap"]}
    assert PlanGrouping().labels(alone) == {"ap": names["ap"]}
    under_way = {"ap": replace(s.at_gate(views["ap"].region), plan=None, accepted=views["ap"].plan)}
    assert grouping.labels(under_way) == {"ap": names["ap"]}


async def test_drift_is_shown_with_how_to_adopt_and_how_to_repair_it() -> None:
    async with running_app(s.ScriptedCockpit(*moment("fleet")), size=(119, 60)) as (app, pilot):
        await pilot.press(*"jjjjjj", "3")
        text = screen_text(app)
        assert "! requests.note (column): the release has nothing, the table has string" in text
        assert "to adopt it: declare note in tables/requests.yaml" in text
        assert "to repair it: there: ALTER TABLE requests DROP COLUMN note" in text


async def test_drift_of_a_live_region_is_shown_in_the_list() -> None:
    view = s.live(s.US)
    assert view.plan is not None
    view = replace(view, plan=replace(view.plan, drift=(s.ALTERED,)))
    async with running_app(s.ScriptedCockpit(view), size=(80, 24)) as (app, _):
        assert "✓ live" in screen_text(app)
        assert "drifted: requests" in screen_text(app)


async def test_the_filter_finds_a_plan_and_what_drifted() -> None:
    async with running_app(s.ScriptedCockpit(*moment("fleet"))) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.press("slash", *f"plan:{home.state.groups[1].label}", "enter")
        assert home._list.shown == ["ap", "me"]
        await pilot.press("escape", "slash", *"drifted", "enter")
        assert home._list.shown == ["af"]


async def test_groups_without_changes_come_last_and_groups_are_compared_with_one_that_changes() -> None:
    views = (s.live(s.US), s.running(s.EU), s.waiting(s.AP))
    async with running_app(s.ScriptedCockpit(*views), size=(119, 40)) as (app, _):
        text = screen_text(app)
        first, second, third = (group.label for group in app.state.groups)
        assert f"plan {first} · 1 region · eu" in text
        assert f"plan {second} · 1 region · ap · another tables.landing.retention: 3d; C101 requests" in text
        assert f"plan {third} · 1 region · us · nothing to do" in text
    async with running_app(s.ScriptedCockpit(*moment("live"))) as (app, _):
        assert "3 regions ·" not in screen_text(app)


async def test_a_single_region_is_in_no_group() -> None:
    async with running_app(s.ScriptedCockpit(s.waiting(s.US))) as (app, _):
        assert "1 region ·" not in screen_text(app)
        assert f"plan {app.state.groups[0].label}" in screen_text(app)


def test_many_plans_are_counted_and_not_all_listed() -> None:
    views = [s.waiting(replace(s.EU, name=f"r{number}")) for number in range(20)]
    plans = [view.plan for view in views if view.plan]
    odd = [replace(plan, nodes=plan.nodes[: number % 5]) for number, plan in enumerate(plans)]
    lines = [line.plain for line in draw_groups(grouped(odd), 80, 4)]
    assert len(lines) == 4
    assert lines[-1].strip() == "… and 2 plans more"
    assert len(draw_groups(grouped(odd), 80, 8)) == 5


def test_plans_are_regrouped_only_when_one_was_replaced() -> None:
    views = {view.region.name: view for view in moment("before")}
    grouping = PlanGrouping()
    first = grouping.of(views)
    assert grouping.of({name: replace(view, note="x") for name, view in views.items()}) is first
    del views["ap"]
    assert [group.regions for group in grouping.of(views)] == [("us", "eu")]


@given(
    st.lists(st.tuples(outside, outside), min_size=1, max_size=5, unique_by=lambda pair: pair[0]), st.integers(24, 200)
)
def test_names_from_outside_are_safe_and_fit(names: list[tuple[str, str]], width: int) -> None:
    drifts = [replace(s.ALTERED, name=why) for _, why in names]
    plans = [s.plan(replace(s.US, name=name), drift=(drift,)) for (name, _), drift in zip(names, drifts, strict=True)]
    for line in draw_groups(grouped(plans), width, 4):
        clean(line)
        assert line.cell_length <= width
    assert plan_title(grouped(plans), names[0][0]).startswith("plan")
