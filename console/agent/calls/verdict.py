"""Judges the answers and costs of recorded calls for the gate. Pure.

A call reads the same files and bytes each time, so a budget of these decides. Time varies: it counts only if every run
is slower than all runs of the other side.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from console.agent.calls.difference import Difference
from console.model.event import Checked
from console.model.recorded_call import (
    BYTES_FACTOR,
    BYTES_SPARE,
    FILES_FACTOR,
    FILES_SPARE,
    CallBudget,
    CallCost,
    PlannedCall,
    ReplayedCall,
)

ANSWERS, COST = "recorded calls: answers", "recorded calls: cost"
JUDGED_RUNS = 3  # per side, for time to count
SLOWER, MUCH_SLOWER = 1.25, 2.0
SLOWER_SECONDS, MUCH_SLOWER_SECONDS = 0.1, 0.25  # in addition: a few milliseconds do not matter
# of fewer runs, since each one took seconds
FEW_SLOWER, FEW_SECONDS = 4.0, 2.0
_ONCE = "failed once, and not again"
NAMED = 4  # calls named in one line


def judge_answers(call: PlannedCall, differs: Difference, rows: tuple[int, int]) -> tuple[bool | None, str]:
    """Whether the answers are acceptable, and why not. rows: numbers of the live answer and of the new one

    A different answer is correct only if the plan expects one and the operator declared it. An expected, undeclared
    difference needs a person's decision, as does one that the query itself allows.
    """
    if differs.equal:
        return True, ""
    what = _what(differs, rows)
    if call.changed and call.differs:
        return True, f"differs as declared ({call.differs}): {what}"
    if call.changed:
        return None, f"{what}; {call.changed}: if that is intended, give the reason as `differs` in the call's file"
    if call.form.doubt:
        return None, f"{what}; {call.form.doubt}"
    if differs.tied and not (differs.lacking or differs.retyped):
        return None, f"{what}; they tie in its order, and its LIMIT cuts them"
    undue = (
        ", and `differs` does not apply: the change does not alter the meaning of its answer" if call.differs else ""
    )
    return False, what + undue


def _what(differs: Difference, rows: tuple[int, int]) -> str:
    """`1 of 14 rows only live, 0 of 13 only new`"""
    parts = []
    if differs.only_live or differs.only_new:
        parts.append(
            f"{differs.only_live:,} of {rows[0]:,} rows only live, {differs.only_new:,} of {rows[1]:,} only new"
        )
    if differs.reordered:
        parts.append(f"{rows[1]:,} equal rows in another order")
    parts += [f"no column {name}" for name in differs.lacking]
    parts += [f"another type of {name}" for name in differs.retyped]
    return ", ".join(parts)


def judge_cost(
    live: CallCost | None, new: CallCost, budget: CallBudget, seconds: tuple[Sequence[float], Sequence[float]]
) -> tuple[bool | None, str]:
    """Whether the new release answers as cheaply, and the increases. seconds: of the counted runs, live and new"""
    over = [
        text
        for text in (
            _over("files", live.files if live else None, new.files, budget.files, FILES_FACTOR, FILES_SPARE),
            _over("bytes", live.bytes if live else None, new.bytes, budget.bytes, BYTES_FACTOR, BYTES_SPARE),
        )
        if text
    ]
    slow, words = _slower(live, new, *seconds)
    verdict = False if over else slow
    return verdict, ", ".join([*over, *([words] if words else [])])


def _over(what: str, was: int | None, reads: int, budget: int | None, factor: float, spare: int) -> str:
    """`2 → 14 files, 6 at most`; "" within the budget."""
    if budget is not None:
        most, whose = budget, "by its budget"
    elif was is not None:
        most, whose = max(int(was * factor), was + spare), "without a budget"
    else:
        return ""
    change = f"{was:,} → {reads:,}" if was is not None else f"{reads:,}"
    return f"{change} {what}, {most:,} at most {whose}" if reads > most else ""


def _slower(
    live: CallCost | None, new: CallCost, before: Sequence[float], after: Sequence[float]
) -> tuple[bool | None, str]:
    """Whether it is as fast. A call that is slow enough is not repeated often: then a few runs decide, if they are far apart."""
    if live is None or not before or not after or min(after) <= max(before):
        return True, ""
    more = new.seconds - live.seconds
    words = f"{live.seconds:.2f} s → {new.seconds:.2f} s"
    if min(len(before), len(after)) < JUDGED_RUNS:
        if more < FEW_SECONDS or new.seconds < live.seconds * MUCH_SLOWER:
            return True, ""
        return (False, words) if new.seconds >= live.seconds * FEW_SLOWER else (None, f"{words}, in too few runs")
    if new.seconds >= live.seconds * MUCH_SLOWER and more >= MUCH_SLOWER_SECONDS:
        return False, words
    if new.seconds >= live.seconds * SLOWER and more >= SLOWER_SECONDS:
        return None, f"{words}: a slowdown below {MUCH_SLOWER:g} × is not conclusive"
    return True, ""


def confirmed(first: ReplayedCall, again: ReplayedCall) -> ReplayedCall:
    """What a call that failed comes to once it was run again: failed where it failed both times, else inconclusive."""
    if first.same is False and again.same is not False:
        first = replace(first, same=None, why=f"{_ONCE}: {first.why}")
    if first.same_cost is False and again.same_cost is not False:
        first = replace(first, same_cost=None, why_cost=f"{_ONCE}: {first.why_cost}")
    return first


def checks_of(endpoint: str, calls: Sequence[ReplayedCall]) -> tuple[Checked, Checked]:
    """The two checks of an endpoint at the gate; the first one holds the figures."""
    rows = sum(call.rows_new for call in calls)
    number = f"{len(calls)} call{'' if len(calls) == 1 else 's'}"
    answers = _lines((call.name, call.why) for call in calls) or f"{number}, {rows:,} rows: the answers are equal"
    cost = _lines((call.name, call.why_cost) for call in calls) or f"{number}: {_total(calls)}"
    return (
        Checked(
            table=endpoint, check=ANSWERS, ok=_all(call.same for call in calls), detail=answers, calls=tuple(calls)
        ),
        Checked(table=endpoint, check=COST, ok=_all(call.same_cost for call in calls), detail=cost),
    )


def _all(results: Iterable[bool | None]) -> bool | None:
    """False if any is False, else None if any is None."""
    each = set(results)
    return False if False in each else None if None in each else True


def _lines(reasons: Iterable[tuple[str, str]]) -> str:
    lines = [f"{name}: {why}" for name, why in reasons if why]
    more = f"; and {len(lines) - NAMED} more calls" if len(lines) > NAMED else ""
    return "; ".join(lines[:NAMED]) + more


def _total(calls: Iterable[ReplayedCall]) -> str:
    """`28 → 28 files, 61,200 → 60,114 bytes, 0.21 s → 0.20 s`"""
    pairs = [(call.live, call.new) for call in calls if call.live is not None and call.new is not None]
    if not pairs:
        return "within their budgets"
    files, bytes_read, seconds = (
        (sum(old), sum(new))
        for old, new in (
            ([a.files for a, _ in pairs], [b.files for _, b in pairs]),
            ([a.bytes for a, _ in pairs], [b.bytes for _, b in pairs]),
            ([a.seconds for a, _ in pairs], [b.seconds for _, b in pairs]),
        )
    )
    return (
        f"{files[0]:,} → {files[1]:,} files, {bytes_read[0]:,} → {bytes_read[1]:,} bytes, "
        f"{seconds[0]:.2f} s → {seconds[1]:.2f} s"
    )
