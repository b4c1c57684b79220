"""Shares as percentages that promise nothing: 100 means all of it, and no rounding leads there."""


def percent_shown(share: float, digits: int = 0) -> float:
    """A share (0…1) in percent, rounded to so many digits; less than the whole is less than 100."""
    shown = round(100 * share, digits)
    return min(shown, 100 - 10.0**-digits) if share < 1 else shown


def percent_text(part: float, whole: float) -> str:
    """`37 %`; `under 1 %` for a part that is smaller than that and not nothing."""
    share = part / whole if whole else 0.0
    return "under 1 %" if 0 < share < 0.01 else f"{percent_shown(share):.0f} %"
