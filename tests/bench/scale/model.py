"""What a fleet of large regions takes, computed from measured costs, and where it would break first. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from console.model.live import Day
from console.model.region import DAY_TARGETS, Limits, Prices, lowest
from console.model.slices import HOURS, cut, pack
from tests.bench.scale.costs import ScaleCosts

TB = 1e12
HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What is given: regions of one size, whose one table is rebuilt from a landing table.

    bytes       of a region's landing table, in data files
    days        of history
    cores       of a region's Spark; as many tasks of a build at once
    file_bytes  of a landing file
    """

    regions: int = 20
    bytes: float = 10 * TB
    days: int = 365
    cores: int = 64
    file_bytes: float = 128 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTotal:
    """What one region takes.

    hours       by the clock, with all cores busy with rows, and one with what does not grow with them
    batch_rows, batch_seconds  of the largest batch, by the clock
    hour_seconds  of an hour's rows in a batch of their own, by the clock: no slice is smaller
    written     bytes of the new version;  log_bytes, stored_bytes: of its log, and of what is stored of the rollout
    survey_seconds, survey_bytes  processor time and memory of a survey, of both tables
    money, monthly  reading and computing; a month's storage of the new version
    """

    rows: float
    batches: int
    core_hours: float
    hours: float
    batch_rows: float
    batch_seconds: float
    hour_seconds: float
    commits: float
    written: float
    files: float
    log_bytes: float
    stored_bytes: float
    survey_seconds: float
    survey_bytes: float
    money: float
    monthly: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Something that does not grow with the region. figure: of the region; in the unit of the limit"""

    what: str
    figure: float
    limit: float
    unit: str
    then: str

    @property
    def share(self) -> float:
        return self.figure / self.limit


def region_total(costs: ScaleCosts, fleet: Fleet, prices: Prices, limits: Limits) -> RegionTotal:
    """Batches are packed as the agent packs them: whole days, as many as the measured rate does in the target's time.

    Rows per second grow with the cores, which is assumed: they were measured with `costs.tasks`.
    """
    rows = fleet.bytes / costs.landing_row_bytes
    batches = packed(costs, fleet, rows, limits)
    seconds = costs.seconds(rows, len(batches))
    files = costs.files_a_day / costs.tasks * fleet.cores * fleet.days
    commits = costs.commits + len(batches)
    written = rows * costs.written_row_bytes
    surveyed = files + fleet.bytes / fleet.file_bytes
    return RegionTotal(
        rows=rows,
        batches=len(batches),
        core_hours=seconds / HOUR,
        hours=(seconds - rows * costs.row_seconds * (1 - 1 / fleet.cores)) / HOUR,
        batch_rows=max(batches),
        batch_seconds=costs.batch_seconds + max(batches) * costs.row_seconds / fleet.cores,
        hour_seconds=costs.batch_seconds + rows / fleet.days / HOURS * costs.row_seconds / fleet.cores,
        commits=commits,
        written=written,
        files=files,
        log_bytes=costs.commit_bytes * commits + costs.file_bytes * files,
        stored_bytes=costs.batch_bytes * len(batches),
        survey_seconds=costs.survey_file_seconds * surveyed,
        survey_bytes=costs.survey_file_bytes * surveyed,
        money=fleet.bytes / TB * prices.tb_read + seconds / HOUR * prices.core_hour,
        monthly=written / TB * prices.tb_month,
    )


def packed(costs: ScaleCosts, fleet: Fleet, rows: float, limits: Limits) -> list[int]:
    """Rows of each batch, once the rate is known, by which heavy days are cut into hours as well."""
    each = Day("", math.ceil(rows / fleet.days), math.ceil(fleet.bytes / fleet.days))
    newest = date(2026, 10, 31)
    days = [replace(each, day=(newest - timedelta(days=number)).isoformat()) for number in range(fleet.days)]
    rate = fleet.cores / costs.row_seconds
    aim = limits.target_seconds * rate
    most = aim if limits.rows is None else min(aim, limits.rows)
    slices, after, batches = cut(days, lowest(limits.rows, limits.day_rows(rate)), bytes_limit=limits.bytes), 0, []
    while run := pack(slices, after, most, limits.bytes):
        after = run[-1].index
        if taken := sum(piece.rows for piece in run):
            batches.append(taken)
    return batches


def bounds(total: RegionTotal, limits: Limits) -> Sequence[Bound]:
    """What does not grow with a region, that which breaks first in front."""
    found = (
        Bound(
            what="the history, beside the week for which Delta keeps removed files (`delta.deletedFileRetentionDuration`)",
            figure=total.hours, limit=7 * 24.0, unit="hours",
            then="a landing table that is compacted and vacuumed meanwhile loses files of the fence, and its history ends early: the plan says until when it is readable",
        ),
        Bound(
            what="an hour of history, the smallest slice, beside four times `limits.target_seconds`",
            figure=total.hour_seconds, limit=DAY_TARGETS * limits.target_seconds, unit="seconds",
            then="a pause, a lost JVM or a lagging feed waits for, or loses, that much",
        ),
        Bound(
            what="the data files of one day, each written by one task, beside 1 GiB",
            figure=total.written / total.files / 2**30, limit=1.0, unit="GiB",
            then="readers and compaction handle larger files worse: more cores, or `limits.rows`, write more of them",
        ),
        Bound(
            what="a survey, beside a second", figure=total.survey_seconds, limit=1.0, unit="seconds",
            then="`console status` and `console plan` wait for it; nothing fails",
        ),
        Bound(
            what="the memory of a survey, beside 1 GiB of an agent's Python", figure=total.survey_bytes / 2**30, limit=1.0, unit="GiB",
            then="the agent of a region needs a larger host",
        ),
    )  # fmt: skip
    return sorted(found, key=lambda bound: -bound.share)
