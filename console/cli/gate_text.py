"""The gate of a rollout as text and as data: its checks, and what people declared there."""

from typing import Any

from console.model.codec import encode
from console.model.event import Checked
from console.model.gate import DECLARED, acceptance_of, counted
from console.model.status import Status
from console.runner.view import RegionView
from console.text import safe_text

RECORDS = "records of who said what; they grant no access"


def check_line(check: Checked, status: Status) -> str:
    """`requests sums: inconclusive, accepted by ada: late rows (1 group differs)`"""
    word = {True: "ok", False: "differs", None: "inconclusive"}[check.ok]
    if by := acceptance_of(status.consent, check):
        word += f", accepted by {by.by}: {by.reason}"
    detail = f" ({check.detail})" if check.detail else ""
    return safe_text(f"{check.table} {check.check}: {word}{detail}")


def declared_lines(view: RegionView) -> list[str]:
    """The soak, approvals and the ticket; [] where none is asked for and none was given."""
    shown = [each for each in view.gate.conditions if each.kind != "check"]
    lines = [
        f"{each.name}: {each.why}{f', named by {each.by}' if each.kind == 'ticket' and each.by else ''}"
        for each in shown
    ]
    if not any(each.kind == "approvals" for each in shown):
        lines += [f"approved by {approval.by}" for approval in counted(view.status)]
    soaks = sum(each.kind not in DECLARED for each in shown)
    return [safe_text(f"{line} ({RECORDS})" if number == soaks else line, 400) for number, line in enumerate(lines)]


def gate_data(view: RegionView) -> dict[str, Any] | None:
    """For `--output json`; None unless a rollout is at its gate."""
    if view.status.state != "awaiting-confirmation":
        return None
    gate = view.gate
    return {
        "open": gate.open and not view.status.held,
        "opens_itself": view.accepted is not None and view.accepted.gate.auto and gate.opens_itself,
        "conditions": encode(gate.conditions),
    }
