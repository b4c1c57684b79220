"""The line below the list: hidden regions, the order, and the number of regions per state, wave by wave. Pure."""

from textual.content import Content

from console.tui.drawing import cell
from console.tui.fleet.order import Order
from console.tui.labels import Label, state_label
from console.tui.state import ScreenState

WIDE_TALLY = 90  # width from which the totals of the waves fit too


def draw_tally(state: ScreenState, hidden: int, below: int, order: Order, width: int) -> Content:
    """`… 10 more · 15 hidden · by lag      wave 1 ✓1   wave 2 ◆1 ▶1 ‖1 !1   wave 3 ·15`"""
    if not state.views:
        return Content("")
    parts = [
        f"… {below} more" if below else "",
        f"{hidden} hidden" if hidden else "",
        f"by {order}" if order != "waves" else "",
    ]
    left = Content.styled("   " + " · ".join(part for part in parts if part), "$text-muted")
    right = _waves(state, width - left.cell_length)
    return cell(left, max(0, width - right.cell_length - 1)) + right


def _waves(state: ScreenState, width: int) -> Content:
    waves: dict[int, dict[str, tuple[Label, int]]] = {}
    for view in state.views.values():
        label = state_label(view, state.at)
        counts = waves.setdefault(view.region.wave, {})
        counts[label.symbol] = (label, counts.get(label.symbol, (label, 0))[1] + 1)
    if len(waves) < 2 and len(state.views) < 2:
        return Content("")
    parts = []
    for number, counts in sorted(waves.items()):
        signs = Content(" ").join(
            Content.styled(f"{symbol}{many}", label.style) for symbol, (label, many) in counts.items()
        )
        total = sum(many for _, many in counts.values())
        of = f" of {total}" if len(counts) > 1 and width >= WIDE_TALLY else ""
        parts.append(Content.assemble((f"wave {number} ", "$text-muted"), signs, (of, "$text-muted")))
    tally = Content("   ").join(parts)
    return tally.truncate(max(0, width), ellipsis=True)
