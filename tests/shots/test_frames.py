"""A terminal recording as an SVG: each line is drawn once for as long as it stays, and at each moment one of a row is shown."""

import re
from xml.etree import ElementTree

import pytest

from tests.shots.frames import Frame, animated

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"


def line(text: str) -> str:
    return f'<text y="13">{text}</text>'


def test_a_line_is_drawn_once_and_shown_from_its_first_frame_to_its_last() -> None:
    frames = [
        Frame((line("a"), line(text)), seconds) for text, seconds in (("b", 1.0), ("c", 2.0), ("c", 1.0), ("b", 4.0))
    ]
    drawn = animated(frames, 10, "x < y")
    groups = [
        (group.get("class"), "".join(group.itertext())) for group in ElementTree.fromstring(drawn).iter(f"{SVG}g")
    ]
    assert groups[1:] == [(None, "a"), ("s0", "b"), ("s1", "c"), ("s2", "b")]
    shown = dict(re.findall(r"@keyframes (s\d)\{(.*)\}", drawn))
    assert shown == {
        "s0": "0.00%{visibility:visible}12.50%{visibility:hidden}",
        "s1": "0%{visibility:hidden}12.50%{visibility:visible}50.00%{visibility:hidden}",
        "s2": "0%{visibility:hidden}50.00%{visibility:visible}",
    }
    assert "prefers-reduced-motion){.all g{animation:none!important}.s2{visibility:visible}}" in drawn
