"""The themes: dark, light, high contrast, and for the colour-blind. Colours only repeat what symbols and words say."""

from textual.theme import Theme

DARK = Theme(
    "console", primary="#5aa9d6", secondary="#8fa7b8", accent="#e0b05a", success="#7cbf7f", warning="#e3b04b",
    error="#ee828b", background="#0e1318", surface="#131a21", panel="#1b242d", foreground="#d5dde3", dark=True,
    variables={
        "text-muted": "#8b9aa6", "text-disabled": "#8b9aa6", "text-primary": "#5aa9d6", "text-success": "#7cbf7f",
        "text-warning": "#e3b04b", "text-error": "#ee828b", "text-accent": "#e0b05a",
    },
)  # fmt: skip
LIGHT = Theme(
    "console-light", primary="#0b5c8a", secondary="#44586a", accent="#7a4d00", success="#1d6326", warning="#7a4d00",
    error="#a3182b", background="#fbfcfd", surface="#f3f5f7", panel="#e7ebef", foreground="#1b232b", dark=False,
    variables={
        "text-muted": "#4c5a66", "text-disabled": "#4c5a66", "text-primary": "#0b5c8a", "text-success": "#1d6326",
        "text-warning": "#7a4d00", "text-error": "#a3182b", "text-accent": "#7a4d00",
    },
)  # fmt: skip
HIGH_CONTRAST = Theme(
    "console-high-contrast", primary="#7fd4ff", secondary="#d0d8de", accent="#ffd75f", success="#8cff8c",
    warning="#ffd75f", error="#ffb0b0", background="#000000", surface="#000000", panel="#0c0c0c", foreground="#ffffff",
    dark=True,
    variables={
        "text-muted": "#d0d8de", "text-disabled": "#d0d8de", "text-primary": "#7fd4ff", "text-success": "#8cff8c",
        "text-warning": "#ffd75f", "text-error": "#ffb0b0", "text-accent": "#ffd75f",
    },
)  # fmt: skip
# blue, orange and yellow, which people without red or green cones tell apart (after Okabe and Ito)
COLOUR_BLIND = Theme(
    "console-colour-blind", primary="#56b4e9", secondary="#a9b6c0", accent="#f0e442", success="#56b4e9",
    warning="#f0e442", error="#ff9f40", background="#0e1318", surface="#131a21", panel="#1b242d", foreground="#e6ebef",
    dark=True,
    variables={
        "text-muted": "#a9b6c0", "text-disabled": "#a9b6c0", "text-primary": "#56b4e9", "text-success": "#56b4e9",
        "text-warning": "#f0e442", "text-error": "#ff9f40", "text-accent": "#f0e442",
    },
)  # fmt: skip
THEMES = (DARK, LIGHT, HIGH_CONTRAST, COLOUR_BLIND)
TEXT_NAMES = (
    "text-muted",
    "text-disabled",
    "text-primary",
    "text-success",
    "text-warning",
    "text-error",
    "text-accent",
)
