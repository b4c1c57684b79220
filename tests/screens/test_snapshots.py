"""Pictures of the screens, as SVG. `UPDATE_GOLDEN=1 pytest tests/screens` rewrites them; look at them then."""

import os
from pathlib import Path

import pytest

from tests.screens.harness import normal, running_app, settle
from tests.screens.moments import moment
from tests.screens.scripted import ScriptedCockpit

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parent / "golden"
MOMENTS = {
    "ended": "slow",
    "plan": "before",
    "safe": "gate",
    "history": "slow",
}  # where it is not the picture's own name
SIZES = [(80, 24), (120, 36), (200, 60)]


def differs(name: str, svg: str) -> bool:
    """Whether the picture is another than the golden one; writes it where asked to."""
    path = GOLDEN / f"{name}.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(normal(svg), encoding="utf-8")
    return not path.exists() or path.read_text(encoding="utf-8") != normal(svg)


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_the_screens_look_as_they_were_approved(size: tuple[int, int]) -> None:
    cockpit = ScriptedCockpit(*moment("before"))
    changed = []
    async with running_app(cockpit, size=size) as (app, pilot):
        for name, typed in (("before", ()), ("running", ()), ("running-region", ("j", "enter")), ("failed", ("escape",)),
                            ("gate", ("k", "P"))):  # fmt: skip
            cockpit.show(*moment(name.partition("-")[0]))
            await settle(pilot)
            await pilot.press(*typed)
            await settle(pilot)
            if differs(f"{name}-{size[0]}x{size[1]}", app.export_screenshot()):
                changed.append(name)
    assert not changed


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_groups_witnesses_rollouts_plans_gates_and_histories_look_as_they_were_approved(
    size: tuple[int, int],
) -> None:
    changed = []
    keys = {
        "fleet": ("j", "j"), "witness": ("w",), "slow": ("j", "enter"), "ended": ("k", "2"), "plan": ("3",), "safe": ("4",),
        "history": ("j", "5"),
    }  # fmt: skip
    for name, typed in keys.items():
        async with running_app(ScriptedCockpit(*moment(MOMENTS.get(name, name))), size=size) as (app, pilot):
            await pilot.press(*typed)
            await settle(pilot)
            if differs(f"{name}-{size[0]}x{size[1]}", app.export_screenshot()):
                changed.append(name)
    assert not changed
