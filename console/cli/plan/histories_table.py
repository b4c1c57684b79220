"""The choices for existing rows, side by side: amounts, costs, and the values that older rows show."""

from collections.abc import Sequence

from console.cli.format import count, expected, size, table
from console.cli.plan.blocks import Paint
from console.model.plan import NodeChange, Plan, Price
from console.text import safe_text


def histories(plans: Sequence[Plan], paint: Paint) -> list[str]:
    """A table for each node whose history can be chosen; figures are summed over the regions, which all have the same plan."""
    lines: list[str] = []
    for node in plans[0].nodes:
        same = [other for plan in plans for other in plan.nodes if (other.kind, other.name) == (node.kind, node.name)]
        if node.options:
            lines += ["", *_history(same, [plan.region for plan in plans], plans[0].currency, paint)]
    return lines


def _history(nodes: Sequence[NodeChange], regions: Sequence[str], currency: str, paint: Paint) -> list[str]:
    several = f", over {count(len(regions), 'region')}" if len(regions) > 1 else ""
    kinds = dict.fromkeys(option.kind for node in nodes for option in node.options)
    rows, reasons = [], []
    for kind in kinds:
        options = [
            (region, option)
            for region, node in zip(regions, nodes, strict=True)
            for option in node.options
            if option.kind == kind
        ]
        possible = [option for _, option in options if not option.impossible]
        words = dict.fromkeys(option.history for _, option in options)
        word = safe_text(next(iter(words)) if len(words) == 1 else f"{kind} (by region)")
        mark = paint("*", "cyan") if any(option.chosen for _, option in options) else " "
        if possible:
            total = sum((option.price for option in possible), Price())
            rows.append([f"{mark} {word}", *_figures(total, currency), safe_text(possible[0].older_rows)])
        for why in dict.fromkeys(option.impossible for _, option in options if option.impossible):
            where = [region for region, option in options if option.impossible == why]
            place = f" in {', '.join(map(safe_text, where))}" if len(where) < len(regions) else ""
            reasons.append(f"      {word}: not possible{place}: {safe_text(why)}")
    heads = ["  choice", "days", "rows", "read", "written", "time", *(["cost"] if currency else []), "older rows"]
    shown = table(heads, rows, right=tuple(range(1, len(heads) - 1)), indent=4).splitlines()
    return [f"  history of {safe_text(nodes[0].name)}, by choice (--history){several}:", *shown, *reasons]


def _figures(price: Price, currency: str) -> list[str]:
    money = [f"{price.money:.2f} {currency}"] if currency else []
    return [f"{price.days}", f"{price.rows:,}", size(price.bytes), size(price.written), expected(price), *money]
