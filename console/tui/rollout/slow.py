"""Why is it slow: the whole time since acceptance, divided; the running Spark job; and the rate elsewhere. Pure."""

from collections.abc import Sequence

from textual.content import Content

from console.model.account import Account, Part, Use, account
from console.model.event import Accepted
from console.model.measured import SparkJob
from console.model.share import percent_shown
from console.model.step_status import StepStatus
from console.model.tuning import limits
from console.runner.view import RegionView
from console.tui.drawing import cell, safe, wrap_indented
from console.tui.format import plural, short, size, span
from console.tui.labels import running_step
from console.tui.times import clock

NAMES: dict[Use, str] = {
    "batches": "batches",
    "waiting": "waited",
    "tries": "tried again",
    "spark": "Spark restarted",
    "away": "no agent ran",
    "paused": "paused",
    "failed": "stood failed",
    "gate": "at the gate",
    "other": "other steps",
}
SHORT_NAMES: dict[Use, str] = {
    "batches": "batches",
    "waiting": "waited",
    "tries": "tries",
    "spark": "Spark lost",
    "away": "no agent",
    "paused": "paused",
    "failed": "failed",
    "gate": "gate",
    "other": "other",
}
TONES: dict[Use, str] = {"batches": "$text-primary", "other": "$text-muted", "gate": "$text-muted"}
NAME_CELLS, REMARK_CELLS, MAX_PARTS, MAX_OTHERS = 19, 30, 20, 3
LEAST_REMARK = 10


def accounted(view: RegionView, now: float) -> Account | None:
    """The account of the rollout's time, up to the region's last report; None if its first events are not known here."""
    events = [recorded for recorded in view.events if recorded.rollout == view.status.rollout]
    if not events or not isinstance(events[0].event, Accepted):
        return None
    return account(events, min(now, view.heard) if silent(view) else now)


def silent(view: RegionView) -> bool:
    """The region is unreachable, and the progress of its rollout since then is unknown."""
    return view.link == "unreachable" and bool(view.heard)


def slow_title(view: RegionView, account: Account | None) -> str:
    if account is None:
        return "why is it slow?"
    extent = f"until {clock(view.heard)}, when it was last heard" if silent(view) else "all of it"
    return f"why is it slow?  {span(account.seconds)}, {extent}"


def slow_lines(view: RegionView, others: Sequence[RegionView], width: int, now: float) -> list[Content]:
    """One line per use of time, the longest wait first; then Spark's job, and the limits of batches.

    others  regions with the same plan, for their rates
    """
    account = accounted(view, now)
    if account is None:
        why = "its first events have not been read" if view.status.rollout else "no rollout has begun here"
        return wrap_indented(Content.styled(f"unknown: {why}.", "$text-muted"), 0, width)
    parts = account.parts[:MAX_PARTS]
    lines = [line for part in parts for line in _part_lines(view, part, account.seconds, others, width)]
    lines += [Content(""), *job_lines(running_step(view), width)] if running_step(view) else []
    return [*lines, *_limits(view, width)]


def slow_line(view: RegionView, width: int, now: float) -> Content:
    """`52 m 04 s: batches 60% · lag 23% · tries 11% · other 6%`; for an unreachable region, up to its last report."""
    account = accounted(view, now)
    if account is None:
        return Content.styled("why slow: its first events have not been read", "$text-muted").truncate(
            width, ellipsis=True
        )
    largest = sorted(account.parts, key=lambda part: -part.seconds)
    parts = [
        Content.assemble(
            safe(_short_name(part), TONES.get(part.use, "$text-warning"), 30),
            f" {percent_shown(_share(part, account.seconds)):.0f}%",
        )
        for part in largest
        if part.seconds > 0
    ]
    extent = f" until {clock(view.heard)}" if silent(view) else ""
    line = Content.assemble((f"{span(account.seconds)}{extent}: ", "bold"), Content(" · ").join(parts))
    return line.truncate(width, ellipsis=True)


def job_lines(step: StepStatus | None, width: int) -> list[Content]:
    """Stage and tasks of the running batch's Spark job, and whether one task takes far longer than the others."""
    if step is None or step.job is None:
        return []
    job = step.job
    head = f"job {job.job} · stage {job.stage} of {job.stages} · tasks {job.done} of {job.tasks} "
    done = job.done / job.tasks if job.tasks else 0.0
    room = max(0, min(30, width - len(head)))
    bar = Content.assemble(
        ("━" * int(done * room), "$text-primary"), ("─" * (room - int(done * room)), "$text-disabled")
    )
    return [cell(Content.assemble(head, bar), width), cell(_tasks(job), width)]


def job_line(step: StepStatus | None, width: int) -> Content:
    """The same in one line; "" without a job."""
    if step is None or step.job is None:
        return Content("")
    job = step.job
    head = f"job {job.job} stage {job.stage}/{job.stages}, tasks {job.done}/{job.tasks}, "
    return Content.assemble(head, _tasks(job, "longest")).truncate(width, ellipsis=True)


def _tasks(job: SparkJob, longest: str = "longest task") -> Content:
    skew = (": skewed", "$text-warning") if job.skewed else ""
    spilled = (f" · spilled {size(job.spilled)}", "$text-warning") if job.spilled else ""
    median = f", median {span(job.median)}" if job.done else ""
    return Content.assemble(f"{longest} {span(job.longest)}{median}", skew, spilled)


def _share(part: Part, whole: float) -> float:
    return part.seconds / whole if whole > 0 else 0.0


def _name(part: Part) -> str:
    return f"waited: {part.cause}" if part.use == "waiting" else NAMES[part.use]


def _short_name(part: Part) -> str:
    return part.cause if part.use == "waiting" and part.cause else SHORT_NAMES[part.use]


def _part_lines(view: RegionView, part: Part, whole: float, others: Sequence[RegionView], width: int) -> list[Content]:
    """One line, with a long remark continued on further lines."""
    share = _share(part, whole)
    remark = _remark(view, part, others)
    room = max(0, min(24, width - NAME_CELLS - 20 - REMARK_CELLS))
    bar = "━" * max(1, round(share * room)) if room and part.seconds > 0 else ""
    style = TONES.get(part.use, "$text-warning")
    name = cell(safe(_name(part), limit=40), NAME_CELLS - 1)
    line = Content.assemble(
        name, " ", f"{span(part.seconds):>10}  ", cell(Content.styled(bar, style), room), f" {share:>4.0%}  "
    )
    if not remark:
        return [line.truncate(width, ellipsis=True)]
    indent = min(line.cell_length, max(0, width - LEAST_REMARK))
    first, *rest = wrap_indented(safe(remark, "$text-muted", 120), indent, width)
    return [(line + first[indent:]).truncate(width, ellipsis=True), *rest]


def _remark(view: RegionView, part: Part, others: Sequence[RegionView]) -> str:
    """The rate, compared with other regions with this plan; the number of occurrences."""
    if part.use != "batches":
        return plural(part.times, "time") if part.times else ""
    rates = [f"{other.region.name}: {short(other.status.rate)}" for other in others if other.status.rate][:MAX_OTHERS]
    own = f"{short(view.status.rate)} rows/s" if view.status.rate else ""
    return "; ".join(filter(None, (own, ", ".join(rates))))


def _limits(view: RegionView, width: int) -> list[Content]:
    """The limits of a batch and the conditions for its start: those of the accepted plan, with later changes."""
    plan = view.accepted
    if plan is None:
        return []
    now = limits(plan, view.status.tuning)
    parts = [f"aims at {span(now.target_seconds)} a batch"]
    parts += [f"at most {short(now.rows)} rows"] if now.rows else []
    parts += [f"at most {size(now.bytes)}"] if now.bytes else []
    throttle = now.throttle
    parts += [f"waits while lag > {span(throttle.lag_seconds)}"] if throttle.lag_seconds is not None else []
    parts += [f"only at {throttle.hours} {throttle.zone}"] if throttle.hours else []
    parts += ["waits for a query"] if throttle.query else []
    if view.status.tuned:
        parts.append(f"{', '.join(view.status.tuning.changed) or 'nothing'} changed by {view.status.tuned.by}")
    return [Content(""), *wrap_indented(safe(" · ".join(parts), "$text-muted", 200), 0, width)]
