"""Shares as percentages, rounded conservatively: 100 only for the whole."""


def percent_shown(share: float, digits: int = 0) -> float:
    """A share (0…1) in percent, rounded to a number of digits; anything less than the whole stays below 100."""
    shown = round(100 * share, digits)
    return min(shown, 100 - 10.0**-digits) if share < 1 else shown


def progress_percent(share: float) -> int:
    """A completed share (0…1) in whole percent, rounded down: the same figure on every screen and in every command."""
    return 100 if share >= 1 else int(100 * share)


def percent_text(part: float, whole: float) -> str:
    """`37 %`; `under 1 %` for a smaller part above zero."""
    share = part / whole if whole else 0.0
    return "under 1 %" if 0 < share < 0.01 else f"{percent_shown(share):.0f} %"
