"""The wording that all reports share: verdicts, checks, days and times."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from console.cli.format import count, percent, size, span
from console.cli.reports.run_report import RegionReport, RegionVerdict, ReportedError, RunReport, RunState
from console.model.account import Part, Use
from console.model.compared import TOGETHER
from console.model.event import Checked, ComparedDay
from console.model.identity import identity
from console.model.recorded_call import ReplayedCall
from console.runner.flips import flips_text

DAYS_NAMED = 20  # maximum of differing days in one text
ROWS_SHOWN = 400  # of one table of days or receipts
CHECK_WORDS = {True: "passed", False: "failed", None: "inconclusive"}
CHECK_VERDICTS = {True: RegionVerdict.PASSED, False: RegionVerdict.FAILED, None: RegionVerdict.INCONCLUSIVE}
USES: dict[Use, str] = {
    "batches": "batches", "waiting": "waiting", "tries": "failed tries", "spark": "Spark lost", "away": "no agent",
    "paused": "paused", "failed": "failed, until a retry", "gate": "at its gate", "other": "other steps",
}  # fmt: skip


def moment(at: float) -> str:
    """`2026-11-23 17:21:19Z`; "" for 0."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%SZ}" if at else ""


def short_moments(moments: Sequence[float]) -> list[str]:
    """Moments in a row, each with its date only if it differs from the previous one."""
    texts, day = [], ""
    for at in moments:
        text = moment(at)
        texts.append(text if text[:10] != day else text[11:])
        day = text[:10]
    return texts


def day_label(day: str) -> str:
    return day or "no day"


def headline(run: RunReport) -> str:
    """The outcome of the run, in one line."""
    if run.error and not run.regions:
        return f"refused: {run.error.message}"
    parts = [(run.count(verdict), verdict.value) for verdict in RegionVerdict]
    counted = ", ".join(f"{number} {word}" for number, word in parts if number)
    regions = f"{count(len(run.regions), 'region')}: {counted}" if run.regions else "no region"
    return regions if run.state is RunState.ENDED else f"{run.state.value}; {regions}"


def facts(run: RunReport) -> Iterator[tuple[str, str]]:
    """The main facts of the run as a whole: names and values."""
    yield "command", run.command
    yield "by", identity(run.by).name
    yield "began", moment(run.began)
    yield "ended" if run.state is RunState.ENDED else "written", moment(run.at)
    yield "took", span(run.at - run.began)
    yield "exit code", "none yet" if run.exit_code is None else str(run.exit_code)
    if run.flips and run.flips.skew:
        yield "promotion", flips_text(run.flips, run.flips.skew)
    yield "tool", run.tool


def error_lines(error: ReportedError) -> Iterator[str]:
    """The message and its remedy, or every finding if there are several."""
    if not error.problems:
        yield error.message + (f" [{error.code}]" if error.code else "")
        if error.hint:
            yield f"hint: {error.hint}"
    for problem in error.problems[:DAYS_NAMED]:
        yield str(problem)
        if problem.hint:
            yield f"hint: {problem.hint}"
    if (more := len(error.problems) - DAYS_NAMED) > 0:
        yield f"and {more} more"


def release_words(region: RegionReport) -> str:
    """`r1 → r2`, or the live release if there was nothing to do."""
    if region.rollout:
        return f"{region.was or 'nothing'} → {region.release}"
    return region.release or region.was


def checks_words(region: RegionReport) -> str:
    return f"{region.passed_checks} of {len(region.checks)}" if region.checks else "none"


def history_words(region: RegionReport) -> str:
    """The share of the history that has been copied; never rounded up."""
    return f"{region.percent} %: {region.rows_done:,} of {region.rows_total:,} rows" if region.rows_total else ""


def share_words(part: Part, seconds: float) -> str:
    """`waiting (lag): 12 min, 34 %`"""
    cause = f" ({part.cause})" if part.cause else ""
    times = f", {part.times} times" if part.times > 1 else ""
    return f"{USES[part.use]}{cause}: {span(part.seconds)}, {percent(part.seconds, seconds)}{times}"


def unequal(days: Sequence[ComparedDay]) -> tuple[ComparedDay, ...]:
    return tuple(day for day in days if not day.equal)


def column_label(column: str) -> str:
    """A differing column of a day; or the whole rows, if each column by itself is equal."""
    return "rows of equal columns" if column == TOGETHER else column


def day_counts(check: Checked) -> tuple[int, int]:
    """The number of compared days and of differing ones: a check lists only the first ones."""
    if check.tally is None:
        return len(check.days), len(unequal(check.days))
    return check.tally.days, check.tally.differing


def day_words(day: ComparedDay) -> str:
    """`2026-11-06: 40 rows live, 39 new; columns: agent`"""
    more = f" and {day.more} more" if day.more else ""
    columns = f"; columns: {', '.join(map(column_label, day.columns))}{more}" if day.columns else ""
    return f"{day_label(day.day)}: {count(day.old, 'row')} live, {day.new:,} new{columns}"


def differing_days(check: Checked) -> Iterator[str]:
    """The days that differ: the first ones, and how many others."""
    differ = unequal(check.days)
    yield from (day_words(day) for day in differ[:DAYS_NAMED])
    if (more := day_counts(check)[1] - min(len(differ), DAYS_NAMED)) > 0:
        yield f"and {count(more, 'day')} more"


def unlike(check: Checked) -> Iterator[str]:
    """A line for each day that differs, and for each recorded call whose answer does."""
    yield from differing_days(check)
    yield from (f"{call.name}: {call.why}" for call in check.calls if call.same is not True)


CALL_HEADS = ("call", "answer", "rows", "files read", "bytes read", "time")


def call_figures(call: ReplayedCall) -> tuple[str, str, str, str]:
    """Rows, files, bytes and time of a recorded call, live → new."""
    live, new = call.live, call.new
    if new is None:
        return "–", "–", "–", "–"
    if live is None:
        return f"{call.rows_new:,}", f"{new.files:,}", size(new.bytes), f"{new.seconds:.2f} s"
    return (
        f"{call.rows_live:,} → {call.rows_new:,}",
        f"{live.files:,} → {new.files:,}",
        f"{size(live.bytes)} → {size(new.bytes)}",
        f"{live.seconds:.2f} s → {new.seconds:.2f} s",
    )


def most_telling(days: Sequence[ComparedDay]) -> tuple[ComparedDay, ...]:
    """Days for a table of limited length: those that differ, then the newest others; oldest first."""
    differ = unequal(days)[:ROWS_SHOWN]
    room = ROWS_SHOWN - len(differ)
    equal = [day for day in days if day.equal][-room:] if room else []
    return tuple(sorted((*differ, *equal), key=lambda day: day.day))
