"""The themes: dark, light, high contrast, and for the colour-blind. Colours only repeat what symbols and words say."""

from typing import Any

from textual.color import Color
from textual.theme import Theme

MEANINGS = ("primary", "success", "warning", "error", "accent")
BADGE_SHARE = 0.16
TEXT_NAMES = ("text-muted", "text-disabled", *(f"text-{name}" for name in MEANINGS))


def _theme(name: str, *, muted: str, **colours: Any) -> Theme:
    """Text uses the colour of its meaning unchanged: Textual would tint it, and the contrast would no longer be the theme's.
    The background of a badge has only a little of its colour, so that its text stays readable."""
    background = Color.parse(str(colours["background"]))
    meant = {f"text-{meaning}": str(colours[meaning]) for meaning in MEANINGS}
    meant |= {f"{name}-muted": background.blend(Color.parse(colours[name]), BADGE_SHARE).hex for name in MEANINGS}
    return Theme(name, **colours, variables={"text-muted": muted, "text-disabled": muted, **meant})


DARK = _theme(
    "console", primary="#5aa9d6", secondary="#8fa7b8", accent="#e0b05a", success="#7cbf7f", warning="#e3b04b",
    error="#ee828b", background="#0e1318", surface="#131a21", panel="#1b242d", foreground="#d5dde3", dark=True, muted="#8b9aa6",
)  # fmt: skip
LIGHT = _theme(
    "console-light", primary="#0b5c8a", secondary="#44586a", accent="#7a4d00", success="#1d6326", warning="#7a4d00",
    error="#a3182b", background="#fbfcfd", surface="#f3f5f7", panel="#e7ebef", foreground="#1b232b", dark=False, muted="#4c5a66",
)  # fmt: skip
HIGH_CONTRAST = _theme(
    "console-high-contrast", primary="#7fd4ff", secondary="#d0d8de", accent="#ffd75f", success="#8cff8c",
    warning="#ffd75f", error="#ffb0b0", background="#000000", surface="#000000", panel="#0c0c0c", foreground="#ffffff",
    dark=True, muted="#d0d8de",
)  # fmt: skip
# blue, orange and yellow, which people without red or green cones tell apart (after Okabe and Ito)
COLOUR_BLIND = _theme(
    "console-colour-blind", primary="#56b4e9", secondary="#a9b6c0", accent="#f0e442", success="#56b4e9",
    warning="#f0e442", error="#ff9f40", background="#0e1318", surface="#131a21", panel="#1b242d", foreground="#e6ebef",
    dark=True, muted="#a9b6c0",
)  # fmt: skip
THEMES = (DARK, LIGHT, HIGH_CONTRAST, COLOUR_BLIND)
