"""Contrast of all drawings, in every theme; and states that are distinguishable without colour."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle

import pytest
from rich._palettes import STANDARD_PALETTE
from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.segment import Segment
from textual.color import Color
from textual.screen import ModalScreen
from textual.theme import Theme

from console.tui.app import ConsoleApp
from console.tui.labels import state_label
from console.tui.rollout.days import SIGNS
from console.tui.terminal.ascii import to_ascii
from console.tui.terminal.themes import HIGH_CONTRAST, THEMES
from tests.screens import recorded as r
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle

pytestmark = pytest.mark.slow

AA, AAA = 4.5, 7.0  # WCAG 2.1, and what high contrast promises
DIMMED = 0.5  # how far a terminal, and Textual, blend dim text into its ground
WALK = (
    "j", "space", "2", "l", "3", "4", "5", "question_mark", "escape", "at", "escape", "1", "j", "ctrl+p", "t", "escape", "4", "P", "escape", "1",
    "j", "j", "j", "3", "s", "escape", "1", "slash", "x",
)  # fmt: skip


def contrast(text: Color, ground: Color) -> float:
    """Of relative luminances."""

    def luminance(color: Color) -> float:
        parts = [part / 255 for part in color.rgb]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(text), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def segments(app: ConsoleApp) -> Iterator[Segment]:
    """Of the whole screen; of one that lies over another, without the faded one below."""
    strips = app.screen._compositor.render_strips(size=app.size)
    if not isinstance(app.screen, ModalScreen):
        yield from (segment for strip in strips for segment in strip)
        return
    for widget in app.screen.children:
        place = widget.region
        for strip in strips[place.y : place.bottom]:
            yield from strip.crop(place.x, place.right)


def as_it_is(color: RichColor) -> Color:
    return Color.from_rich_color(color)


def of_sixteen(color: RichColor) -> Color:
    """What a terminal of sixteen colours draws instead, by the palette against which Rich chooses the nearest."""
    number = color.downgrade(ColorSystem.STANDARD).number
    assert number is not None
    return Color(*STANDARD_PALETTE[number])


def faint(
    app: ConsoleApp, wanted: float, drawn: Callable[[RichColor], Color] = as_it_is
) -> list[tuple[str, str, str, float]]:
    """Words on the screen whose contrast is too low: text, its colour, its ground, the ratio."""
    results = []
    for segment in segments(app):
        style = segment.style
        if not re.search(r"\w", segment.text) or style is None or style.color is None or style.bgcolor is None:
            continue
        text, ground = drawn(style.color), drawn(style.bgcolor)
        if style.reverse:
            text, ground = ground, text
        if style.dim:
            text = ground.blend(text, DIMMED)
        if (ratio := contrast(text, ground)) < wanted:
            results.append((segment.text.strip(), text.hex, ground.hex, round(ratio, 2)))
    return results


def views() -> tuple[s.RegionView, ...]:
    """Every state, every environment's badge, and figures that are no longer fresh."""
    shown = [
        s.failed(s.US), r.slow(s.EU), s.at_gate(s.AP, wrong=True), s.live(s.AP), s.running(s.EU), s.waiting(s.EU, 61_200),
        s.at_gate(s.EU),
    ]  # fmt: skip
    old = replace(s.running(s.AP), heard=s.NOON - 30)
    lost = replace(s.running(s.AP), link="unreachable", link_why="no answer for 10 s")
    places = cycle(("prod", "staging", "", "dev"))
    return tuple(
        replace(view, region=replace(view.region, name=f"r{number}", environment=place))
        for number, (view, place) in enumerate(zip([*shown, old, lost], places, strict=False))
    )


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
async def test_every_word_that_is_drawn_has_the_contrast_that_people_need(theme: Theme) -> None:
    wanted = AAA if theme is HIGH_CONTRAST else AA
    async with running_app(s.ScriptedCockpit(*views()), size=(160, 48)) as (app, pilot):
        app.theme = theme.name
        await settle(pilot)
        weak = set(faint(app, wanted))
        for key in WALK:
            await pilot.press(key)
            await pilot.pause(0.2 if key == "t" else 0.05)
            weak |= set(faint(app, wanted))
        assert not weak


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
async def test_sixteen_colours_leave_every_word_its_contrast_and_tell_good_from_bad(theme: Theme) -> None:
    async with running_app(s.ScriptedCockpit(*views()), size=(160, 48)) as (app, pilot):
        app.theme = theme.name
        await settle(pilot)
        weak = set(faint(app, AA, of_sixteen))
        for key in ("j", "2", "4", "P", "escape", "5", "ctrl+p"):
            await pilot.press(key)
            await pilot.pause(0.05)
            weak |= set(faint(app, AA, of_sixteen))
        assert not weak
    assert all((theme.success, theme.warning, theme.error))
    shades = [of_sixteen(Color.parse(str(shade)).rich_color) for shade in (theme.success, theme.warning, theme.error)]
    assert len(set(shades)) == len(shades)


async def test_sixteen_colours_name_every_state_and_every_environment() -> None:
    """One row a region: its state in words behind its own sign; its environment by name in the pane below."""
    async with running_app(s.ScriptedCockpit(*views()), size=(160, 48)) as (app, pilot):
        for number, view in enumerate(views()):
            await settle(pilot)
            text, label = screen_text(app), state_label(view)
            (row,) = (line for line in text.splitlines() if line.startswith("›"))
            assert f" {label.symbol} {label.text.split()[0]}" in row or f" {label.symbol} away" in row
            assert f"r{number}  {view.region.environment or 'no environment'}  " in text
            await pilot.press("j")


def test_states_and_days_are_told_apart_without_colour_and_in_ascii() -> None:
    labels = {}
    for view in views():
        label = state_label(view)
        labels[label.symbol] = labels.get(label.symbol, set()) | {label.text}
    assert sum(map(len, labels.values())) == len({text for texts in labels.values() for text in texts})
    for signs in ([symbol for symbol, _ in SIGNS.values()], list(labels)):
        assert len(set(signs)) == len({to_ascii(sign) for sign in signs}) == len(signs)


async def test_without_colour_the_cursor_and_the_states_still_stand_in_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running_app(s.ScriptedCockpit(*views()), size=(160, 48)) as (app, pilot):
        await pilot.press("j")
        await settle(pilot)
        colours = {
            (style.color.triplet, style.bgcolor.triplet)
            for segment in segments(app)
            if (style := segment.style) and style.color and style.bgcolor and segment.text.strip()
        }
        grey = all(
            triplet is None or triplet.red == triplet.green == triplet.blue for pair in colours for triplet in pair
        )
        assert grey
        lines = [line.text for line in app.screen._compositor.render_strips(size=app.size)]
        assert any(line.startswith("› ") and "r1" in line for line in lines)
