"""A handover as Markdown, for a ticket or a chat: outside text cannot create markup, and no secret is included."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from console.markup import safe_markdown
from console.runner.handover.facts import Handover, PendingDecision, RegionFacts
from console.text import safe_text

DECISIONS = 30


def markdown(given: Handover) -> str:
    """Decisions first, then regions that run, wait and rest, notes, and how to stop."""
    by = f", written by {safe_markdown(given.by)}" if given.by else ""
    lines = [f"# Handover: {safe_markdown(given.pipeline)}, {_moment(given.at)}", "", _summary(given) + by + ".", ""]
    lines += ["## Next decisions", "", *_decisions(given), ""]
    for title, regions in (("Running", given.running), ("Waiting", given.waiting), ("At rest", given.resting)):
        if regions:
            lines += [f"## {title}", "", *map(_region, regions), ""]
    if given.notes:
        lines += ["## Notes", ""]
        for left in given.notes:
            head = f"{_moment(left.note.at)} **{safe_markdown(left.region)}** {safe_markdown(left.rollout)}"
            lines.append(f"- {head}, {safe_markdown(left.note.by)}: {safe_markdown(left.note.text)}")
        lines.append("")
    lines += ["## How to stop", "", "Closing a console stops nothing: the agents continue, up to the gate.", ""]
    lines += [f"- {_code(stop.command)}: {stop.does}" for stop in given.stop]
    return "\n".join(lines)


def _summary(given: Handover) -> str:
    counts = [(len(given.running), "running"), (len(given.waiting), "waiting"), (len(given.resting), "at rest")]
    counted = ", ".join(f"{number} {word}" for number, word in counts if number)
    return f"Regions: {counted or 'none'}"


def _decisions(given: Handover) -> Iterator[str]:
    pressing = [decision for decision in given.decisions if decision.now]
    later = [decision for decision in given.decisions if not decision.now]
    if not pressing:
        yield "Nothing needs anybody now."
        if later:
            yield ""
    yield from _listed([*pressing, *later])


def _listed(decisions: list[PendingDecision]) -> Iterable[str]:
    for number, decision in enumerate(decisions[:DECISIONS], 1):
        by = f"by {_moment(decision.due)}: " if decision.due else ""
        then = f" (then {decision.then})" if decision.due and decision.then else ""
        since = f", since {_moment(decision.since)}" if decision.since else ""
        cause = f"{safe_markdown(decision.cause)}{since}{then}"
        yield f"{number}. {by}**{safe_markdown(decision.region)}**: {cause} → {_code(decision.command)}"
    if len(decisions) > DECISIONS:
        yield f"\n… and {len(decisions) - DECISIONS} more: `console status`"


def _region(region: RegionFacts) -> str:
    place = f" ({safe_markdown(region.environment)})" if region.environment else ""
    facts = "; ".join(safe_markdown(fact) for fact in region.facts)
    return f"- **{safe_markdown(region.region)}**{place}: {safe_markdown(region.state)}; {facts}"


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%MZ}"


def _code(command: str) -> str:
    return f"`{safe_text(command).replace('`', chr(39))}`"
