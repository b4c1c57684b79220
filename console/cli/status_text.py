"""The state of rollouts, as a table and as JSON."""

import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from console.cli.compared_text import calls_data, comparison_data, comparison_lines
from console.cli.forecast_text import forecast_data
from console.cli.format import count, span, table
from console.cli.gate_text import check_line, declared_lines, gate_data
from console.cli.history_choices_text import option_lines
from console.model.codec import encode
from console.model.event import Ailing
from console.model.note import Note
from console.model.plan import Plan
from console.model.region import Region
from console.model.soak import soak_text
from console.model.status import Status
from console.model.tuning import tuned_text
from console.model.watcher import watchers_text
from console.model.way_back import cleanup_text, proof_text
from console.runner import after_promotion
from console.runner.outlook.forecast import forecast_of
from console.runner.view import Outcome, RegionView
from console.runner.waves import QueuedRegion
from console.text import safe_text

NOTES_SHOWN = 5  # of one region
_AT_END = ("live", "rolled-back", "cancelled", "discarded", "cleaned")


def status_text(
    views: Sequence[RegionView],
    errors: Mapping[str, str],
    now: float | None = None,
    *,
    waits: Mapping[str, QueuedRegion] = MappingProxyType({}),
) -> str:
    """One line per region; below it the reason for a standstill with its remedy, and its checks once they exist.

    errors  region → why it gave no answer
    now     seconds, UTC; this moment by default
    waits   regions whose wave of a rollout has not begun
    """
    now = time.time() if now is None else now
    heads = ["region", "state", "done", "rows", "rows/s", "left", "lag", "release", "now"]
    rows, notes = [], []
    for view in views:
        name = safe_text(view.region.name)
        if view.region.name in errors:
            last_seen = f"{safe_text(view.live)}, last seen" if view.live else ""
            rows.append([name, "unreachable", "", "", "", "", "", last_seen, safe_text(errors[view.region.name])])
            continue
        rows.append([name, *_cells(view)])
        notes += [f"{name}: {text}" for text in _notes(view, now)]
        if queued := waits.get(view.region.name):
            notes.append(f"{name}: {queued_text(queued)}")
    shown = table(heads, rows, right=(2, 3, 4))
    return "\n".join([shown, *(["", *notes] if notes else [])])


def queued_text(queued: QueuedRegion) -> str:
    """The wait of a region whose wave has not begun, and the command that starts it."""
    if queued.after:
        return safe_text(f"wave {queued.wave} has not begun: it waits for {', '.join(queued.after)}")
    live = f": {', '.join(queued.ahead)} {'is' if len(queued.ahead) == 1 else 'are'} live" if queued.ahead else ""
    return safe_text(f"wave {queued.wave} has not begun, and can start{live}; console apply --regions {queued.region}")


def status_data(
    views: Sequence[RegionView], errors: Mapping[str, str], *, waits: Mapping[str, QueuedRegion] = MappingProxyType({})
) -> dict[str, Any]:
    """For `--output json`: the whole status of each region."""
    regions = [region_data(view, errors.get(view.region.name, "")) for view in views]
    for region in regions:
        queued = waits.get(region["region"])
        region["waits_for_wave"] = {"wave": queued.wave, "after": list(queued.after)} if queued else None
    return {"regions": regions}


def region_data(view: RegionView, error: str = "") -> dict[str, Any]:
    """One region's status with the figures that text shows computed as well."""
    status = view.status
    return {
        "region": view.region.name,
        "state": "unreachable" if error else status.shown,
        "error": error,
        "live": view.live,
        "previous": view.previous,
        "behind": view.behind,
        "percent": status.percent,
        "rows_done": status.rows_done,
        "rows_total": status.rows_total,
        "rows_per_second": round(status.rate, 1),
        "eta_seconds": status.eta_seconds,
        "forecast": forecast_data(None if error else forecast_of(view, view.heard)),
        "feeds_stand_still": len(status.standing),
        "feeds": encode(status.ailing),
        "agent_runs": None if error else view.attended,
        "waiting_for": "" if status.held else status.why,
        "may_pause_until": status.reads_until or None,
        "steps_percent": {step.id: step.percent for step in status.steps},
        "comparison": comparison_data(status),
        "previews": encode(status.sandboxes),
        "way_back": way_back_data(view, time.time()),
        "on_hold": encode(status.on_hold),
        "erased_rows": None if status.erased is None else encode(status.erased),
        "recorded_calls": calls_data(status),
        "gate": gate_data(view),
        "watch": after_promotion.watch_data(view),
        "status": encode(status),
    }


def way_back_data(view: RegionView, now: float) -> dict[str, Any] | None:
    """The proof that a rollback would work, with its age; None without a previous release.

    now  seconds, UTC
    """
    proof = view.status.way_back
    if not view.previous:
        return None
    if proof is None or proof.release != view.previous:
        return {"release": view.previous, "state": "inconclusive", "age_seconds": None}
    kept = {"cleanup_in_seconds": round(proof.until - now)} if proof.until else {}
    return {**encode(proof), "state": proof.state_at(now), "age_seconds": round(max(0.0, now - proof.at)), **kept}


def way_back_lines(view: RegionView, now: float) -> list[str]:
    """Whether a rollback would work, and when its release may go; [] without one."""
    if not view.previous:
        return []
    proof = view.status.way_back
    lines = [f"way back to {view.previous} {proof_text(proof, view.previous, now, attended=view.attended)}"]
    lines += [cleanup_text(view.previous, proof.until, now)] if proof is not None and proof.until else []
    return [safe_text(line, 400) for line in lines]


def _cells(view: RegionView) -> list[str]:
    status = view.status
    moving = status.state in ("preparing", "backfilling", "catching-up") and not (status.held or status.why)
    done = f"{status.percent} %" if status.rows_total else ""
    rows = f"{status.rows_done:,} of {status.rows_total:,}" if status.rows_total else ""
    release = view.live or "none"
    if status.release and status.release != view.live and status.state not in _AT_END:
        release += f" → {status.release}"
    return [
        status.shown + (f", {count(len(status.standing), 'feed')} stopped" if status.standing else ""),
        done,
        rows,
        f"{status.rate:,.0f}" if status.rate else "",
        span(status.eta_seconds) if moving and status.eta_seconds is not None else "",
        f"{span(status.lag_seconds)}" if status.lag_seconds else "",
        safe_text(release),
        safe_text(_now(status)),
    ]


def _now(status: Status) -> str:
    running = next((step for step in status.steps if step.state == "running"), None)
    if status.held or status.why:
        return status.why
    return " ".join(part for part in (running.id, running.batch) if part) if running else ""


def pause_budget(status: Status, now: float) -> str:
    """`may stay paused 5 d 3 h, until 2026-11-12 18:00Z`: how long files of its history are kept; "" if none is read."""
    if not status.reads_until:
        return ""
    when = datetime.fromtimestamp(status.reads_until, UTC).strftime("%Y-%m-%d %H:%MZ")
    if status.reads_until <= now:
        return f"files of its history may already be deleted, since {when}"
    return f"can stay paused for {span(status.reads_until - now)}, until {when}"


def _notes(view: RegionView, now: float) -> list[str]:
    status = view.status
    notes = [f"hint: {safe_text(status.hint)}"] if status.hint else []
    notes += [line for feed in status.ailing for line in ailing_lines(feed)]
    if view.attended is False and not status.standing and (waits := _unattended(view)):
        notes.append(f"no agent runs, and {waits}; {_to_follow(view.region)}")
    if status.taken_by and status.state not in _AT_END:
        notes.append(f"{status.rollout} by {safe_text(status.by)}, taken over by {safe_text(status.taken_by)}")
    if status.state not in _AT_END and (tuned := tuned_text(view.accepted, status.tuned)):
        notes.append(f"tuned: {safe_text(tuned)}")
    if status.state not in _AT_END and view.accepted is not None:
        notes += _older_rows(view.accepted)
    if status.state == "live" and view.accepted is not None:
        today = datetime.fromtimestamp(now, UTC).date().isoformat()
        notes += [safe_text(text) for text in view.accepted.showing_older(today)]
    if watching := watchers_text(view.others_watching):
        notes.append(f"watched by {safe_text(watching)}")
    notes += _following_lines(view)
    notes += [note_line(note) for note in status.notes[-NOTES_SHOWN:]]
    notes += [safe_text(sandbox.text(view.live, now), 300) for sandbox in status.sandboxes]
    notes += way_back_lines(view, now)
    notes += [safe_text(held.text(now), 300) for held in status.on_hold]
    notes += [safe_text(each.text(now), 300) for each in status.erased or ()]
    notes += [safe_text(soak_text(status.soak, now), 400)] if status.soak else []
    notes += [safe_text(line.text, 600) for line in after_promotion.lines(view, now)]
    if status.quarantined:
        rows = count(status.quarantined, "row")
        notes.append(f"{rows} that do not convert are in quarantine: SELECT * FROM _console.quarantine")
    if view.behind and not is_moving(status):
        notes.append(f"behind: {safe_text(view.live)} is live there, which is not what the files declare")
    if status.held == "paused" and (budget := pause_budget(status, now)):
        notes.append(budget)
    if status.held == "failed":
        until = datetime.fromtimestamp(status.changed + view.region.policy.keep_failed_hours * 3600, UTC)
        notes.append(f"what it built is kept until {until:%Y-%m-%d %H:%M}Z")
    notes += declared_lines(view) if status.state == "awaiting-confirmation" else []
    return [*notes, *(f"check {check_line(check, status)}" for check in status.checks), *comparison_lines(status)]


def _following_lines(view: RegionView) -> list[str]:
    """How its agent follows, where that is not by the defaults, and since when its Spark sleeps."""
    following, lines = view.status.following, list[str]()
    if following is not None and (followed := following.text(view.region.follow)):
        lines.append(followed)
    if following is not None and following.asleep_since:
        since = datetime.fromtimestamp(following.asleep_since, UTC)
        lines.append(f"Spark sleeps since {since:%Y-%m-%d %H:%M}Z; new rows, a rollout or a query wake it")
    return lines


def note_line(note: Note) -> str:
    """`note of 2026-11-22 08:12Z by ana on laptop: …`"""
    at = datetime.fromtimestamp(note.at, UTC).strftime("%Y-%m-%d %H:%MZ")
    return safe_text(f"note of {at} by {note.by} on {note.host}: {note.text}")


def _unattended(view: RegionView) -> str:
    """Rows that wait in a region without an agent; "" if there are none."""
    if is_moving(view.status) and view.status.state != "awaiting-confirmation":
        return "" if view.status.held else "its rollout does not continue"
    return "live rows will wait" if view.live else ""


def _to_follow(region: Region) -> str:
    """The command that starts an agent; a region behind SSH needs it on its own host."""
    if region.transport is None:
        return safe_text(f"console follow --region {region.name}")
    return safe_text(f"on {region.transport.host}: console follow --warehouse {shlex.quote(region.warehouse)}")


def ailing_lines(feed: Ailing) -> list[str]:
    """The failing feeds, with cause and remedy."""
    below = f", nor do the tables below it ({', '.join(feed.below)})" if feed.below else ""
    does = f"has stopped, so {feed.path} gets no rows{below}" if feed.standing else f"is failing, attempt {feed.tries}"
    code = f" [{feed.code}]" if feed.code else ""
    lines = [f"feed {feed.feed} {does}: {feed.why}{code}"]
    return [safe_text(line) for line in [*lines, *([f"hint: {feed.hint}"] if feed.hint else [])]]


def is_moving(status: Status) -> bool:
    """Whether a rollout is on its way to another release."""
    return status.state not in (*_AT_END, "none")


def _older_rows(plan: Plan) -> list[str]:
    """What older rows will show, and until when."""
    return [safe_text(text) for text in (*plan.chosen_history, *plan.read_until_expiry)]


def gate_text(view: RegionView, now: float) -> str:
    """The content of the gate: each check with its outcome, their age, changed limits, notes, and other watchers."""
    status = view.status
    lines = [check_line(check, status) for check in status.checks] or ["no table was rebuilt: nothing to compare"]
    lines += comparison_lines(status)
    if status.checked_at:
        lines.append(f"checked {span(now - status.checked_at)} ago")
    lines += [safe_text(soak_text(status.soak, now), 400)] if status.soak else []
    plan = view.accepted
    lines += [
        line for node in (plan.nodes if plan else ()) for line in option_lines(node, plan.currency if plan else "")
    ]
    lines += _older_rows(plan) if plan else []
    lines.append(f"{count(status.lag_commits, 'commit')} behind the source" if status.lag_commits else "no lag")
    if tuned := tuned_text(view.accepted, status.tuned):
        lines.append(safe_text(f"tuned: {tuned}"))
    if watching := watchers_text(view.others_watching):
        lines.append(safe_text(f"watched by {watching}"))
    lines += declared_lines(view)
    lines += [note_line(note) for note in status.notes[-NOTES_SHOWN:]]
    return "\n".join(f"  {line}" for line in lines)


def outcomes_text(outcomes: Sequence[Outcome]) -> str:
    """The outcome in each region, with a remedy if it failed."""
    rows = [[safe_text(o.region), safe_text(o.state), safe_text(str(o.error)) if o.error else ""] for o in outcomes]
    return table(["region", "state", ""], rows)


def outcomes_data(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [{"region": o.region, "state": o.state, "error": str(o.error) if o.error else ""} for o in outcomes]
