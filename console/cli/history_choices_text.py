"""The choices for a table's history as lines of text, for the plan, the gate and `status`."""

from console.cli.format import count, expected, size
from console.model.plan import HistoryOption, NodeChange
from console.text import safe_text


def option_lines(node: NodeChange, currency: str = "") -> list[str]:
    """`history of requests · carry (chosen): 14,000 rows, …; older rows: agent is NULL`, a line for each choice."""
    name = safe_text(node.name)
    return [f"history of {name} · {_word(option)}: {_summary(option, currency)}" for option in node.options]


def _summary(option: HistoryOption, currency: str) -> str:
    if option.impossible:
        return f"not possible: {safe_text(option.impossible)}"
    price = option.price
    money = f", {price.money:.2f} {currency}" if currency and price.money else ""
    moved = (
        f"{count(price.rows, 'row')}, {size(price.bytes)} read, {size(price.written)} written, {expected(price)}{money}"
    )
    return f"{moved}; {safe_text(option.older_rows)}"


def _word(option: HistoryOption) -> str:
    return f"{safe_text(option.history)}{' (chosen)' if option.chosen else ''}"
