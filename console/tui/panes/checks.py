"""The validation: one line per check. An inconclusive check does not count as passed."""

from collections import Counter

from textual.content import Content

from console.model.consent import REASON_CHARACTERS
from console.model.event import Checked
from console.model.gate import acceptance_of, unaccepted
from console.model.status import Status
from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines
from console.tui.labels import STYLES, Label

MAX_CHECKS = 400
INDENT = 11  # under the table's name


def verdict(check: Checked) -> Label:
    """ok, differs or inconclusive."""
    if check.ok is None:
        return Label("?", "inconclusive", "warn")
    return Label("✓", "ok", "good") if check.ok else Label("✗", "differs", "bad")


def draw_checks(view: RegionView, width: int, at: float) -> Content:
    """All checks of the latest validation, failures first; without checks, when they will run."""
    checks = sorted(view.status.checks, key=lambda check: check.ok is True)
    if not checks:
        return Content("no check has run yet: old and new are compared once history and live rows are loaded.")
    return stack_lines(line for check in checks[:MAX_CHECKS] for line in check_lines(check, width, view.status))


def check_lines(check: Checked, width: int, status: Status) -> list[Content]:
    """`✓ ok      requests · rows per day · 14 days equal`, wrapped with an indent."""
    label = verdict(check)
    texts = [safe(check.table, "bold", 80), safe(check.check, limit=80)]
    if by := acceptance_of(status.consent, check):
        texts.append(safe(f"accepted by {by.by}: {by.reason}", limit=REASON_CHARACTERS))
    if check.detail:
        texts.append(safe(check.detail, "$text-muted"))
    whole = Content.assemble((f"{label.symbol} {label.text:<8}", label.style), " ", Content(" · ").join(texts))
    if whole.cell_length <= width:
        return [whole]
    first, *others = whole.wrap(width - INDENT)
    return [first, *(Content.assemble(" " * INDENT, line) for line in others)]


def promotion_blocker(status: Status) -> str:
    """Why the checks do not allow promotion; "" if all of them passed or were accepted.

    A rollout that moved history and has no check at all may not be promoted either.
    """
    wrong = [check for check in status.checks if check.ok is False]
    unclear = unaccepted(status)
    if wrong:
        return f"{len(wrong)} of {len(status.checks)} checks differ"
    if unclear:
        return f"{len(unclear)} of {len(status.checks)} checks are inconclusive"
    if not status.checks and any(step.history for step in status.steps):
        return "no check has run"
    return ""


def tally(status: Status) -> Content:
    """`12 ok`, `11 ok, 1 differs`."""
    counts = Counter(verdict(check) for check in status.checks)
    parts = [Content.styled(f"{number} {label.text}", label.style) for label, number in counts.items()]
    return Content(", ").join(parts) if parts else Content.styled("no checks", STYLES["quiet"])
