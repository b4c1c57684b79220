"""The time at which a rollout reaches its gate, and its cost: intervals from its measurements so far. Pure.

The first batch of each table, its newest days, is the rehearsal (`model/rehearsal`): from then on every table has a rate of its own. A table that
has none yet is estimated by the others' rates, by rows and by bytes. Each batch corrects the intervals.
"""

from collections.abc import Sequence

from console.model.account import Account, account
from console.model.event import Recorded
from console.model.measured import FeedSample
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status
from console.model.step import Backfill, CatchUp
from console.model.step_id import CATCH_UP, VALIDATE, StepId
from console.model.step_status import StepStatus
from console.model.tuning import limits
from console.record import dataclass
from console.runner.outlook.between import NOTHING, Between, total
from console.runner.outlook.pace import MeasuredRollout, measured
from console.runner.outlook.rates import rates
from console.runner.outlook.windows import after_work
from console.runner.view import RegionView

MOST_SECONDS = 365 * 86_400.0
# Priors for figures that a rollout measures only at its end, from recorded rollouts (`tests/forecast`): seconds, fixed times of
# a batch, and shares of the time that its rows took.
CATCHING_UP = Between(0.1, 5.0)
LOG_SHARE = Between(0.1, 1.0)
CLOSING_JOBS, CLOSING_SHARE = Between(0.8, 1.8), Between(0.05, 0.2)
VALIDATION_JOBS, VALIDATION_SHARE = Between(2.2, 4.5), Between(0.1, 0.5)
WAITS_AGAIN, FAILS_AGAIN = Between(0.5, 1.5), Between(0.0, 1.0)  # of the time lost so far, per second of work
WAITS_LONGER = 2.0  # than the longest so far: then its end is unpredictable
UNMEASURED = Between(0.6, 1.6)
BYTES_VARY = Between(0.85, 1.15)
ESTIMATE_ERROR = Between(0.9, 1.1)  # of rows before the fence
BEFORE_GATE = ("preparing", "backfilling", "catching-up", "validating")
_TB = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Intervals as of `at` (seconds since 1970, UTC).

    copied   when the last slice is committed and has its receipt;  gate: when every check has run; seconds since 1970, UTC
    rows     of history, in all
    written  bytes of the new versions, in all
    money    in the region's currency: reading and computing, to the gate; 0 without prices
    batches  number of batches that it rests on
    """

    at: float
    copied: Between
    gate: Between
    rows: Between
    written: Between
    money: Between
    batches: int


def forecast_of(view: RegionView, now: float) -> Forecast | None:
    """The forecast of a region's rollout; None also while the region is not heard.

    now  when its figures were heard
    """
    if view.link == "unreachable" or not now:
        return None
    return forecast(view.status, view.events, region=view.region, plan=view.accepted, now=now, samples=view.samples)


def forecast(
    status: Status,
    events: Sequence[Recorded],
    *,
    region: Region,
    plan: Plan | None,
    now: float,
    samples: Sequence[FeedSample] = (),
) -> Forecast | None:
    """The forecast of a rollout on its way to the gate; None before its first batch is measured, while it is held, while it
    waits for something whose end is unpredictable, and if a year or more would be left: then too little was measured.

    events   stored ones, as far as they are known;  plan: the accepted one, None if unknown
    samples  of the region's feeds; from half an hour of history on they give a better rate than single batches
    """
    if status.held or status.state not in BEFORE_GATE:
        return None
    own = [recorded for recorded in events if recorded.rollout == status.rollout]
    known, spent = measured(status, own, now), account(own, now)
    history = [step for step in status.steps if step.history]
    if not history or not known.batches or not _foreseeable(status, known, now):
        return None
    open_steps = [step for step in history if step.state != "done"]
    batches = total(_backfill(step, known, plan) for step in open_steps)
    slowed = _sampled(status, samples, plan) or batches.scaled(_lost(spent))
    slowed = total((slowed, *(_closing(known, step) for step in open_steps)))
    if slowed.high > MOST_SECONDS:
        return None
    copied = after_work(now, slowed, plan, status)
    work = known.seconds + sum(pace.running for pace in known.paces.values()) + batches.middle
    rest = total((*_catch_ups(status, known, plan, work), _validation(status, known, history)))
    gate = total((copied, rest))
    if gate.high - now > MOST_SECONDS:
        return None
    return Forecast(
        at=now,
        copied=copied,
        gate=gate,
        rows=total(_rows(step) for step in history),
        written=total(_written(step, known) for step in history),
        money=_money(region, plan, spent, total((slowed, rest))),
        batches=known.batches,
    )


def _sampled(status: Status, samples: Sequence[FeedSample], plan: Plan | None) -> Between | None:
    """Seconds of the remaining history, between the lowest and the highest rate of the last hour, waits included; None if
    too little was sampled, or if hours limit the batches, since the time outside them is not that of a rate."""
    between = rates(samples, status.started)
    if between is None or (plan is not None and limits(plan, status.tuning).throttle.hours):
        return None
    left = max(0, status.rows_total - status.rows_done - status.rows_running)
    return Between(left / between[1], left / between[0])


def _foreseeable(status: Status, known: MeasuredRollout, now: float) -> bool:
    """Whether any open wait is short, or ends by the clock. A throttle's other conditions have no known end, but waits like
    those that have ended are part of the time lost so far.
    """
    wait = status.waiting
    if wait is None or wait.cause == "hours":
        return True
    longest = known.waits.get(wait.cause)
    return longest is not None and now - wait.since <= WAITS_LONGER * longest


def _backfill(step: StepStatus, known: MeasuredRollout, plan: Plan | None) -> Between:
    """Seconds of the remaining batches of a step."""
    left = max(0, step.rows_total - step.rows_done)
    own = known.paces.get(step.id)
    if own is None:
        return _unmeasured(step, left, known, plan)
    return own.rows(left).less(own.running)


def _unmeasured(step: StepStatus, left: int, known: MeasuredRollout, plan: Plan | None) -> Between:
    """Seconds of a table without a batch, at the rate of the others: by its rows and by its bytes, whichever is less and more."""
    others = known.together
    if others is None:
        return NOTHING
    by_rows = others.per_row.middle * left
    by_bytes = _by_bytes(step, known, plan) or by_rows
    return Between(min(by_rows, by_bytes), max(by_rows, by_bytes)).scaled(UNMEASURED)


def _by_bytes(step: StepStatus, known: MeasuredRollout, plan: Plan | None) -> float:
    """Seconds of a table at the others' rate of bytes read, as priced by the plan; 0 if unknown."""
    priced = {each.id: each.bytes for each in (plan.steps if plan else ()) if isinstance(each, Backfill)}
    seconds = sum(pace.seconds for pace in known.paces.values())
    read = sum(priced.get(name, 0) * pace.done / pace.of for name, pace in known.paces.items() if pace.of)
    return priced.get(step.id, 0) * seconds / read if read else 0.0


def _closing(known: MeasuredRollout, step: StepStatus) -> Between:
    """Seconds between the last batch of a step and its end: its receipts are checked."""
    if known.closings:
        return _measured(known.closings)
    pace = known.paces.get(step.id) or known.together
    return pace.job(step.rows_total, CLOSING_JOBS, CLOSING_SHARE) if pace else NOTHING


def _catch_ups(status: Status, known: MeasuredRollout, plan: Plan | None, work: float) -> list[Between]:
    """Seconds of each feed that is not live yet. A table below a rebuilt one reads that one's whole log.

    work  seconds of all batches
    """
    logs = {each.id for each in (plan.steps if plan else ()) if isinstance(each, CatchUp) and each.start == "log"}
    waiting = [step.id for step in status.steps if StepId.parse(step.id).kind == CATCH_UP and step.state != "done"]
    behind = Between(CATCHING_UP.low, max(CATCHING_UP.high, known.waits.get("lag", 0.0)))
    each = _measured(known.catch_ups) if known.catch_ups else behind
    return [total((CATCHING_UP, LOG_SHARE.times(work))) if id in logs else each for id in waiting]


def _validation(status: Status, known: MeasuredRollout, history: Sequence[StepStatus]) -> Between:
    """Remaining seconds of the comparison and the other checks, which read what the batches wrote."""
    step = next((each for each in status.steps if each.id == str(VALIDATE)), None)
    if step is None or step.state == "done":
        return NOTHING
    paces = ((each, known.paces.get(each.id) or known.together) for each in history)
    checks = (pace.job(each.rows_total, VALIDATION_JOBS, VALIDATION_SHARE) for each, pace in paces if pace)
    behind = Between(0.0, known.waits.get("lag", 0.0))  # old and new are brought to one position first
    return total((behind, *checks)).less(known.validating)


def _measured(seconds: Sequence[float]) -> Between:
    return Between(min(seconds) * 0.7, max(seconds) * 1.4)


def _lost(spent: Account) -> Between:
    """The factor by which waits, failed tries and losses of Spark lengthen the remaining work, if they continue at their rate so far."""
    worked = spent.of("batches").seconds
    if not worked:
        return Between(1.0, 1.0)
    waits = sum(part.seconds for part in spent.parts if part.use == "waiting" and part.cause in ("lag", "query"))
    failed = spent.of("tries").seconds + spent.of("spark").seconds + spent.of("away").seconds
    return total((Between(1.0, 1.0), WAITS_AGAIN.times(waits / worked), FAILS_AGAIN.times(failed / worked)))


def _rows(step: StepStatus) -> Between:
    rows = max(step.rows_total, step.rows_done)
    if step.slices or step.state == "done":
        return Between(rows, rows)
    return ESTIMATE_ERROR.times(rows)


def _written(step: StepStatus, known: MeasuredRollout) -> Between:
    left = max(0, step.rows_total - step.rows_done)
    size = step.bytes / step.rows_done if step.rows_done else known.bytes_per_row
    vary = BYTES_VARY if step.rows_done else UNMEASURED
    return total((Between(step.bytes, step.bytes), vary.times(left * size)))


def _money(region: Region, plan: Plan | None, spent: Account, left: Between) -> Between:
    """The price of the bytes that are read, and of the cores until the gate; without the time of waits."""
    prices = region.prices
    read = (plan.price.bytes if plan else 0) / _TB * prices.tb_read
    worked = sum(spent.of(use).seconds for use in ("batches", "tries", "spark", "other"))
    an_hour = region.spark.cores * prices.core_hour
    return Between(*(read + (worked + seconds) / 3600 * an_hour for seconds in (left.low, left.high)))
