"""Regions with equal plans, so that people review plans and not regions; and tables that were altered by hand."""

from collections.abc import Mapping, Sequence

from textual.content import Content

from console.model.plan import Drift, Plan
from console.runner.view import Group, RegionView, grouped, plan_label
from console.tui.drawing import safe, wrap_indented
from console.tui.format import plural
from console.tui.labels import under_way

MAX_NAMES = 12  # regions named in one line
WIDE = 110  # column at which a long line is continued on the next, if there is room


class PlanGrouping:
    """Groups the plans of a fleet; regroups only when a plan was replaced, since that reads all of them."""

    def __init__(self) -> None:
        self._plans: tuple[Plan, ...] = ()
        self._groups: tuple[Group, ...] = ()
        self._labels: dict[str, tuple[Plan, str]] = {}  # region → its accepted plan, and that one's label

    def of(self, views: Mapping[str, RegionView]) -> tuple[Group, ...]:
        plans = tuple(view.plan for view in views.values() if view.plan is not None)
        if len(plans) != len(self._plans) or any(a is not b for a, b in zip(plans, self._plans, strict=True)):
            self._plans, self._groups = plans, grouped(plans)
        return self._groups

    def labels(self, views: Mapping[str, RegionView]) -> Mapping[str, str]:
        """Region name → the label of the plan that runs there, else of the pending one, if that changes anything."""
        pending = {name: group.label for group in self.of(views) if group.plans[0].changes for name in group.regions}
        return pending | {
            name: self._label(name, view.accepted) for name, view in views.items() if view.accepted and under_way(view)
        }

    def _label(self, region: str, plan: Plan) -> str:
        known = self._labels.get(region)
        if known is None or known[0] is not plan:
            known = self._labels[region] = (plan, plan_label(plan))
        return known[1]


def same_plan(views: Mapping[str, RegionView], region: str) -> tuple[RegionView, ...]:
    """The other regions that have run, or run, the plan that this region runs; the most advanced first."""
    own = views.get(region)
    if own is None or own.accepted is None:
        return ()
    wanted = _identity(own.accepted)
    alike = [v for name, v in views.items() if name != region and v.accepted and _identity(v.accepted) == wanted]
    return tuple(sorted(alike, key=lambda view: (view.status.state != "live", view.status.started)))


def _identity(plan: Plan) -> tuple[str, str, tuple[str, ...]]:
    return plan.pipeline, plan.desired, tuple(node.action for node in plan.nodes)


def draw_groups(groups: Sequence[Group], width: int, max_lines: int) -> list[Content]:
    """`plan 2f34 · 14 regions · us, eu, …`, `plan 91c0 · 4 regions · ap, … · another tables.landing.retention: 3d`.

    max_lines  the last one counts the omitted plans
    returns    [] for a single region, and if there is nothing to review
    """
    single = sum(len(group.plans) for group in groups) < 2
    if single or not any(group.plans[0].changes or group.drifted for group in groups):
        return []
    shown = groups if len(groups) <= max_lines else groups[: max(0, max_lines - 1)]
    left = len(groups) - len(shown)
    texts = [_group_line(group) for group in shown]
    lines = [line for text in texts for line in wrap_indented(text, 3, width)]
    if width < WIDE or len(lines) > max_lines - bool(left):
        lines = [Content.assemble("   ", text).truncate(width, ellipsis=True) for text in texts]
    return [*lines, Content.styled(f"   … and {plural(left, 'plan')} more", "$text-muted")] if left else lines


def plan_title(groups: Sequence[Group], region: str) -> str:
    """`plan 2f34, the same in eu, ap`: the title over the plan of one region."""
    group = next((group for group in groups if region in group.regions), None)
    if group is None:
        return "plan"
    others = [name for name in group.regions if name != region]
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    same = f", the same in {', '.join(others[:3])}{more}" if others else ""
    return f"plan {group.label}{same}"


def drift_text(drift: Sequence[Drift]) -> str:
    """`drifted: requests.agent, landing`."""
    places = dict.fromkeys(".".join(filter(None, (altered.table, altered.name))) for altered in drift)
    return f"drifted: {', '.join(places)}" if places else ""


def _group_line(group: Group) -> Content:
    parts = [Content.styled(f"plan {group.label}", "bold $text-accent"), Content(plural(len(group.plans), "region"))]
    names = ", ".join(group.regions[:MAX_NAMES]) + (", …" if len(group.regions) > MAX_NAMES else "")
    parts.append(safe(names, "$text-muted", 200))
    style = "$text-warning" if group.drifted else ""
    if group.differs:  # names the drift, too
        parts.append(safe("; ".join(group.differs), style, 200))
    elif group.drifted:
        parts.append(safe(drift_text(group.plans[0].drift), style, 200))
    return Content(" · ").join(parts)
