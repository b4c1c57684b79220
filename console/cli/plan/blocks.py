"""The blocks around a plan's tree: groups of regions, drift, affected owners, costs."""

from collections.abc import Callable, Iterable, Sequence

from console.cli.format import count, expected, size, span, table
from console.model.plan import Answer, Drift, Plan, Price
from console.model.step import Backfill
from console.runner.view import Group
from console.text import safe_text

Paint = Callable[[str, str], str]


def overview(groups: Sequence[Group]) -> list[str]:
    """`14 regions: plan A; 4 regions, another tables.landing.retention: 3d: plan B; 2 regions, drifted: plan C`."""
    if len(groups) < 2:
        return []
    parts = []
    for group in groups:
        why = f", {safe_text('; '.join(group.differs))}" if group.differs else ""
        parts.append(f"{count(len(group.plans), 'region')}{why}: plan {group.label}")
    return [";\n".join(parts)]


def head(group: Group, alone: bool) -> str:
    """The names of a group's regions; its label if there are other groups."""
    names = ", ".join(map(safe_text, group.regions))
    same = f"{names}: same" if len(group.plans) > 1 else names
    return same if alone else f"plan {group.label} · {same}"


def drift(plans: Sequence[Plan], paint: Paint) -> list[str]:
    """The drift matrix: manual alterations, their regions, and both remedies."""
    where: dict[Drift, list[str]] = {}
    for plan in plans:
        for drift in plan.drift:
            where.setdefault(drift, []).append(plan.region)
    lines = []
    for drift, regions in where.items():
        name = safe_text(".".join(filter(None, (drift.table, drift.name))))
        declared, real = safe_text(drift.said) or "nothing", safe_text(drift.found) or "nothing"
        lines.append(
            f"  {paint('drift', 'yellow')} in {', '.join(map(safe_text, regions))}: {name} ({drift.what}): the release has {declared}, the table has {real}"
        )
        lines += [f"      to adopt it:  {safe_text(drift.adopt)}", f"      to repair it: {safe_text(drift.repair)}"]
    return ["", *lines] if lines else []


def owners(answers: Iterable[Answer]) -> list[str]:
    """The affected readers, owner by owner."""
    by: dict[str, list[Answer]] = {}
    for answer in answers:
        by.setdefault(answer.owner, []).append(answer)
    lines = []
    for owner in sorted(by, key=lambda name: (not name, name)):
        nodes = "; ".join(f"{safe_text(a.name)} ({a.kind}): {safe_text(a.why)}" for a in by[owner])
        lines.append(f"    {safe_text(owner) or 'no owner'}: {nodes}")
    return ["", "  results change for:", *lines] if lines else []


def figures(plans: Sequence[Plan]) -> str:
    """Amounts and costs, region by region and, if several tables move, table by table."""
    money = any(_priced(plan) for plan in plans)
    heads = ["region", "live", "days", "rows", "read", "written", "free", "batches", "time"]
    heads += ["cost", "a month"] if money else []
    rows = []
    for plan in plans:
        free = size(plan.free_bytes) if plan.free_bytes else ""
        everything = f"{plan.everything.rows:,} rows, {size(plan.everything.bytes)}, {expected(plan.everything)}"
        everything += f", {plan.everything.money:.2f} {plan.currency}" if _priced(plan) else ""
        start = [safe_text(plan.region), safe_text(plan.live) or "none"]
        rows.append([*start, *_row(plan.price, free, plan, money), everything])
        moving = [node for node in plan.nodes if node.price.rows or node.price.written]
        rows += [
            [f"  {safe_text(node.name)}", "", *_row(node.price, "", plan, money), ""] for node in moving[1:] and moving
        ]
    right = tuple(range(2, len(heads)))
    return table([*heads, "migrate everything"], rows, right=right, indent=2)


def _priced(plan: Plan) -> bool:
    return bool(plan.currency and (plan.price.money or plan.everything.money))


def _row(price: Price, free: str, plan: Plan, money: bool) -> list[str]:
    costs = [f"{figure:.2f} {plan.currency}" if _priced(plan) else "" for figure in (price.money, price.monthly)]
    cells = [
        f"{price.days}",
        f"{price.rows:,}",
        size(price.bytes),
        size(price.written),
        free,
        f"{price.batches}",
        expected(price),
    ]
    return cells + (costs if money else [])


def limits(plans: Sequence[Plan]) -> list[str]:
    """Each region's throttles, quarantine limit and builds on a Spark of their own; nothing if there are none."""
    regions_of: dict[str, list[str]] = {}
    for plan in plans:
        settings = _limits(plan)
        if settings:
            regions_of.setdefault(settings, []).append(safe_text(plan.region))
    return [f"  in {', '.join(names)} {settings}" for settings, names in regions_of.items()]


def _limits(plan: Plan) -> str:
    throttle, parts = plan.throttle, []
    if throttle.hours:
        parts.append(f"from {throttle.hours.replace('-', ' to ')} {throttle.zone}")
    if throttle.lag_seconds is not None:
        parts.append(f"while live rows are at most {span(throttle.lag_seconds)} behind")
    if throttle.query:
        parts.append("while throttle.query answers true")
    settings = f"batches begin only {', '.join(parts)}" if parts else ""
    if plan.quarantine_rows:
        rows = count(plan.quarantine_rows, "row")
        settings += f"{'; ' if settings else ''}up to {rows} that do not convert may go to quarantine"
    elsewhere = [step.target for step in plan.steps if isinstance(step, Backfill) and step.second_spark]
    if elsewhere:
        names = ", ".join(map(safe_text, dict.fromkeys(elsewhere)))
        settings += f"{'; ' if settings else ''}the history of {names} is built on the second Spark"
    return settings
