"""A check as Markdown, for the review comment that a pipeline posts and keeps up to date."""

import re
from collections.abc import Sequence

from console.cli.format import count, size, span
from console.cli.plan.text import plan_text, summary_line
from console.errors import Problem
from console.markup import safe_markdown
from console.model.plan import ACTIONS, Plan
from console.runner.view import grouped
from console.text import safe_text

MARK = "<!-- console check -->"  # the marker by which the CI pipeline finds its own comment again
MOST = 60_000  # characters; the forges refuse comments over 64 KiB
_SEVERITY = {"refuse": "🛑 refused", "warn": "⚠️ warning", "note": "ℹ️ note"}


def comment(plans: Sequence[Plan], problems: Sequence[Problem]) -> str:
    """Groups of regions with the same plan, their changes and reasons, losses, prices, owners; the text folded."""
    lines = [MARK, "## console check", ""]
    if any(problem.severity == "refuse" for problem in problems):
        lines += [f"**The files are wrong: {count(len(problems), 'problem')}.**", "", *_problems(problems)]
    elif not plans:
        lines += ["The files are valid.", "", *_problems(problems)]
    else:
        lines += [f"**{safe_markdown(summary_line(plans))}**", ""]
        for group in grouped(plans):
            lines += _group(group.label, group.plans, group.differs)
        lines += _owners(plans)
        lines += ["<details><summary>The plans as text</summary>", "", *_fenced(plan_text(plans)), "", "</details>"]
    text = "\n".join(lines)
    return text if len(text) <= MOST else text[: MOST - 200] + "\n```\n\n… cut: `console check` shows all of it"


def _group(label: str, plans: Sequence[Plan], differs: Sequence[str]) -> list[str]:
    first = plans[0]
    names = ", ".join(safe_markdown(plan.region) for plan in plans)
    lines = [f"### Plan {label} · {count(len(plans), 'region')}: {names}", ""]
    lines += [f"Differs: {safe_markdown('; '.join(differs))}", ""] if differs else []
    if not first.changes:
        return [*lines, "Nothing to do.", "", *_problems(first.problems)]
    lines += ["| | node | what | why |", "|---|---|---|---|"]
    for node in first.changes:
        lines.append(
            f"| `{ACTIONS[node.action].symbol}` | {safe_markdown(node.name)} ({node.kind}) | {node.action} | {safe_markdown(node.why)} |"
        )
    lines += [
        "",
        "| region | days | rows | read | written | time | cost | migrate everything |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for plan in plans:
        price, whole = plan.price, plan.everything
        time = f"~{span(price.seconds)}" if price.seconds else "not measured" if price.rows else "0 s"
        cost = f"{price.money:.2f} {plan.currency}" if price.money and plan.currency else ""
        figures = [f"{price.days}", f"{price.rows:,}", size(price.bytes), size(price.written), time, cost]
        lines.append(
            f"| {safe_markdown(plan.region)} | {' | '.join(figures)} | {whole.rows:,} rows, {size(whole.bytes)} |"
        )
    return [*lines, "", *_problems(first.problems)]


def _problems(problems: Sequence[Problem]) -> list[str]:
    lines = []
    for problem in problems:
        place = f" (`{_code(problem.where)}`)" if problem.where else ""
        hint = f" — {safe_markdown(problem.hint)}" if problem.hint else ""
        word = _SEVERITY.get(problem.severity, problem.severity)
        lines.append(f"- {word} **{safe_markdown(problem.code)}** {safe_markdown(problem.message)}{place}{hint}")
    return [*lines, ""] if lines else []


def _owners(plans: Sequence[Plan]) -> list[str]:
    answers = dict.fromkeys(answer for plan in plans for answer in plan.answers)
    if not answers:
        return []
    lines = ["### Results change for", "", "| owner | node | why |", "|---|---|---|"]
    lines += [
        f"| {safe_markdown(a.owner) or '—'} | {safe_markdown(a.name)} ({a.kind}) | {safe_markdown(a.why)} |"
        for a in answers
    ]
    return [*lines, ""]


def _fenced(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]


def _code(outside: str) -> str:
    return safe_text(outside).replace("`", "'")
