"""The lines below the table of `console status`: needs, and ends of running backfills, as on the screen."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from console.cli.forecast_text import forecast_text
from console.cli.format import count, span
from console.runner.outlook.attention import NeedKind, RegionNeed, attention, upcoming
from console.runner.outlook.forecast import forecast_of
from console.runner.together.readiness import SplitWave
from console.runner.view import RegionView, plan_label
from console.text import safe_text

COMMANDS: Mapping[NeedKind, str] = {
    NeedKind.FAILED: "retry",
    NeedKind.PAUSED: "resume",
    NeedKind.GATE: "promote",
    NeedKind.RETRIED: "status --history 1h",
    NeedKind.WAITING: "status --history 1h",
    NeedKind.UNPLANNED: "plan",
    NeedKind.CLEANUP: "rollback",
    NeedKind.ON_HOLD: "cleanup --restore",
}


def overview_text(views: Sequence[RegionView], now: float, splits: Sequence[SplitWave] = ()) -> str:
    """Regions wave by wave, ends of backfills, and needs with due dates or ages; "" for regions at rest.

    now     seconds since 1970, UTC
    splits  waves that are live in part
    """
    by_name = {view.region.name: view for view in views}
    needs = attention(by_name, now)
    lines = [*_ready_lines(views, now), *(_need_line(need, now) for need in needs or upcoming(by_name, now)[:1])]
    parts = (f"{split.text}; the rest: {split.finish}; back: {split.take_back}" for split in splits)
    lines[:0] = [safe_text(part) for part in parts]
    if len(views) > 1:
        lines.insert(0, " · ".join(f"wave {number}: {_tally(states)}" for number, states in _waves(views)))
    title = f"{count(len(needs), 'thing')} to look at:" if needs else "nothing needs you"
    return "\n".join([title, *(f"  {line}" for line in lines)])


def overview_data(views: Sequence[RegionView], now: float, splits: Sequence[SplitWave] = ()) -> dict[str, Any]:
    """For `--output json`: the same, with times in seconds since 1970."""
    by_name = {view.region.name: view for view in views}
    return {
        "at": now,
        "needs": [_need_data(need) for need in attention(by_name, now)],
        "upcoming": [_need_data(need) for need in upcoming(by_name, now)],
        "waves": [
            {"wave": number, "regions": sum(states.values()), "states": dict(states)}
            for number, states in _waves(views)
        ],
        "split_waves": [
            {
                "wave": split.wave,
                "live": list(split.live),
                "waiting": list(split.waiting),
                "finish": split.finish,
                "return": split.take_back,
            }
            for split in splits
        ],
        "ready": {
            name: {"from": expected.gate.low, "until": expected.gate.high}
            for name, view in by_name.items()
            if (expected := forecast_of(view, now))
        },
        "plans": {name: plan_label(view.plan) for name, view in by_name.items() if view.plan},
    }


def _ready_lines(views: Sequence[RegionView], now: float) -> Iterator[str]:
    for view in views:
        if expected := forecast_of(view, now):
            currency = view.accepted.currency if view.accepted else ""
            yield safe_text(f"{view.region.name}: {forecast_text(expected, currency)}")
        if view.status.lag_rows:
            rows = count(view.status.lag_rows, "row")
            yield safe_text(f"{view.region.name}: {rows} behind, lag {view.status.lag_seconds:.1f} s")


def _need_line(need: RegionNeed, now: float) -> str:
    since = f", for {span(now - need.since)}" if need.since else ""
    due = f", due in {span(need.due - now)}" if need.due > now else f", overdue by {span(now - need.due)}"
    word = COMMANDS.get(need.kind, "status")
    then = f"; then {need.then}" if need.then else ""
    return safe_text(
        f"{need.region}: {need.cause}{since}{due if need.due else ''}{then}: console {word} --regions {need.region}"
    )


def _need_data(need: RegionNeed) -> dict[str, Any]:
    return {
        "kind": need.kind.name.lower(),
        "region": need.region,
        "cause": need.cause,
        "since": need.since or None,
        "due": need.due or None,
        "then": need.then,
    }


def _waves(views: Sequence[RegionView]) -> list[tuple[int, Counter[str]]]:
    tallies: dict[int, Counter[str]] = {}
    for view in views:
        state = "unreachable" if view.link == "unreachable" else view.status.shown
        tallies.setdefault(view.region.wave, Counter())[state] += 1
    return sorted(tallies.items())


def _tally(states: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in states.items())
