"""A check as Markdown, for the review comment that a pipeline posts and keeps up to date."""

import re
from collections.abc import Sequence

from console.cli.format import count, size, span
from console.cli.plan.text import plan_text, summary_line
from console.errors import Problem
from console.model.plan import ACTIONS, Plan
from console.runner.view import grouped
from console.text import safe_text

MARK = "<!-- console check -->"  # by which the pipeline finds its own comment again
MOST = 60_000  # characters; the forges refuse comments over 64 KiB
_SEVERITY = {"refuse": "🛑 refused", "warn": "⚠️ warning", "note": "ℹ️ note"}


def comment(plans: Sequence[Plan], problems: Sequence[Problem]) -> str:
    """Groups of regions with the same plan, what changes in each and why, losses, prices, owners; the text folded."""
    lines = [MARK, "## console check", ""]
    if problems:
        lines += [f"**The files are wrong: {count(len(problems), 'problem')}.**", "", *_problems(problems)]
    elif not plans:
        lines += ["The files are valid."]
    else:
        lines += [f"**{cell(summary_line(plans))}**", ""]
        for group in grouped(plans):
            lines += _group(group.label, group.plans, group.differs)
        lines += _owners(plans)
        lines += ["<details><summary>The plans as text</summary>", "", *_fenced(plan_text(plans)), "", "</details>"]
    text = "\n".join(lines)
    return text if len(text) <= MOST else text[: MOST - 200] + "\n```\n\n… cut: `console check` shows all of it"


def _group(label: str, plans: Sequence[Plan], differs: Sequence[str]) -> list[str]:
    first = plans[0]
    names = ", ".join(cell(plan.region) for plan in plans)
    lines = [f"### Plan {label} · {count(len(plans), 'region')}: {names}", ""]
    lines += [f"Differs: {cell('; '.join(differs))}", ""] if differs else []
    if not first.changes:
        return [*lines, "Nothing to do.", ""]
    lines += ["| | node | what | why |", "|---|---|---|---|"]
    for node in first.changes:
        lines.append(
            f"| `{ACTIONS[node.action].symbol}` | {cell(node.name)} ({node.kind}) | {node.action} | {cell(node.why)} |"
        )
    lines += [
        "",
        "| region | days | rows | read | written | time | cost | migrate everything |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for plan in plans:
        price, whole = plan.price, plan.everything
        time = f"~{span(price.seconds)}" if price.seconds else "not measured" if price.rows else "0 s"
        cost = f"{price.money:.2f}" if price.money else ""
        figures = [f"{price.days}", f"{price.rows:,}", size(price.bytes), size(price.written), time, cost]
        lines.append(f"| {cell(plan.region)} | {' | '.join(figures)} | {whole.rows:,} rows, {size(whole.bytes)} |")
    return [*lines, "", *_problems(first.problems)]


def _problems(problems: Sequence[Problem]) -> list[str]:
    lines = []
    for problem in problems:
        place = f" (`{_code(problem.where)}`)" if problem.where else ""
        hint = f" — {cell(problem.hint)}" if problem.hint else ""
        word = _SEVERITY.get(problem.severity, problem.severity)
        lines.append(f"- {word} **{cell(problem.code)}** {cell(problem.message)}{place}{hint}")
    return [*lines, ""] if lines else []


def _owners(plans: Sequence[Plan]) -> list[str]:
    answers = dict.fromkeys(answer for plan in plans for answer in plan.answers)
    if not answers:
        return []
    lines = ["### Results change for", "", "| owner | node | why |", "|---|---|---|"]
    lines += [f"| {cell(a.owner) or '—'} | {cell(a.name)} ({a.kind}) | {cell(a.why)} |" for a in answers]
    return [*lines, ""]


def _fenced(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text, fence]


def cell(outside: str) -> str:
    """Text from outside in a line or cell: it makes no markup, no row and no mention."""
    shown = re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", safe_text(outside))
    return shown.replace("@", "@\u200b")


def _code(outside: str) -> str:
    return safe_text(outside).replace("`", "'")
