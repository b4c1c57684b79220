"""docs/scale.md, from the record of measured costs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from console import project
from console.cli.format import size
from console.model.region import Limits, Prices
from tests.bench.parts import ROOT
from tests.bench.scale import hour
from tests.bench.scale.costs import ScaleCosts, ScaleRecord
from tests.bench.scale.hour import DAY, HOUR, HourRecord
from tests.bench.scale.model import TB, Fleet, RegionTotal, bounds, region_total

RECORD, PAGE = ROOT / "docs" / "scale-costs.json", ROOT / "docs" / "scale.md"
FLEET = Fleet()
SIZES = (0.1, 1.0, 10.0, 100.0)  # TB of a region
CORES = (8, 64, 256)
LIMITS = Limits()


def rendered(record: ScaleRecord, prices: Prices, hour: HourRecord | None = None) -> str:
    """prices: of the demo's regions;  hour: None where none was measured"""
    return "\n".join(_lines(record, prices, hour)) + "\n"


def _lines(record: ScaleRecord, prices: Prices, hour: HourRecord | None) -> Iterator[str]:
    costs = record.costs
    total = region_total(costs, FLEET, prices, LIMITS)
    yield from (
        "# Scale",
        "",
        f"What {FLEET.regions} regions of {FLEET.bytes / TB:g} TB each take to rebuild one table, computed by `python -m tests.bench.scale` from costs measured on one small machine",
        f"([scale-costs.json](scale-costs.json), {record.at}, commit {record.commit or 'unknown'}, {record.machine}). `tests/bench/test_scale.py` measures them, and writes both files.",
        "Nothing of this size was run. Three sizes were, and have to stay within 20 % of the model ([benchmarks.md](benchmarks.md)); what is assumed beyond them is said below.",
        "",
        "## Given",
        "",
        f"- The demo's requests: a query that parses JSON, {costs.landing_row_bytes:.1f} bytes a row in the landing table's files, {costs.written_row_bytes:.1f} in the new version's. Rows of other data are",
        "  larger, and there are fewer of them to a terabyte: processor time goes by rows.",
        f"- {FLEET.days} days of history in landing files of {size(round(FLEET.file_bytes))}; {FLEET.cores} cores a region, all of them busy with rows; the default limits (`target_seconds` {LIMITS.target_seconds:g}).",
        f"- {prices.core_hour:g} {prices.currency} a core and hour, {prices.tb_read:g} a terabyte read, {prices.tb_month:g} a terabyte and month stored, as in the demo's regions.",
        "",
        "## Measured",
        "",
        "| what | costs |",
        "|---|---|",
    )
    yield from (f"| {what} | {cost} |" for what, cost in _costs(costs))
    yield from ("", "## A region, and all", "", "| | one region | all |", "|---|---|---|")
    yield from (f"| {what} | {one} | {all_} |" for what, one, all_ in _totals(total, prices))
    yield from (
        "",
        f"All regions at once take as long as one; one wave after the other each its own {total.hours:,.1f} hours. Twice the disk space of the table is needed until the cleanup.",
        "",
        "## What breaks first",
        "",
        "| what | of such a region | limit | reached at about | then |",
        "|---|---|---|---|---|",
    )
    for bound in bounds(total, LIMITS):
        reached = f"{FLEET.bytes / TB / bound.share:,.3g} TB" if bound.share else "never"
        yield f"| {bound.what} | {bound.figure:,.3g} {bound.unit} | {bound.limit:g} | {reached} | {bound.then} |"
    if hour is not None:
        yield from ("", "## Following", "", *_following(hour))
    yield from ("", "## Other sizes", "", *_grid(costs, prices), "", "## Assumed, not measured", "", *_ASSUMED)


def _costs(costs: ScaleCosts) -> Sequence[tuple[str, str]]:
    return (
        ("a row: parsed, written, its receipt, and its comparison at the gate", f"{costs.row_seconds * 1e6:.2f} µs of processor time"),
        ("a batch beside its rows", f"{costs.batch_seconds:.2f} processor seconds"),
        ("a rollout of one table beside its batches", f"{costs.rollout_seconds:.1f} processor seconds"),
        ("commits of a new version beside its batches'", f"{costs.commits:.1f}"),
        ("a commit in the log", f"{costs.commit_bytes:,.0f} bytes, and {costs.file_bytes:,.0f} for each data file"),
        (f"data files of a day, by {costs.tasks} tasks", f"{costs.files_a_day:.1f}"),
        ("a batch in the region's own tables", f"{costs.batch_bytes:,.0f} bytes"),
        ("a data file in a survey", f"{costs.survey_file_seconds * 1e6:.1f} µs and {costs.survey_file_bytes:,.0f} bytes of memory"),
    )  # fmt: skip


def _totals(total: RegionTotal, prices: Prices) -> Iterator[tuple[str, str, str]]:
    all_ = FLEET.regions
    yield "rows", f"{total.rows:,.3g}", f"{total.rows * all_:,.3g}"
    yield "batches", f"{total.batches:,}", f"{total.batches * all_:,}"
    yield "rows of the largest batch", f"{total.batch_rows:,.3g}", ""
    yield "core hours", f"{total.core_hours:,.0f}", f"{total.core_hours * all_:,.0f}"
    yield "hours by the clock", f"{total.hours:,.1f}", f"{total.hours:,.1f}"
    yield "commits of the new version", f"{total.commits:,.0f}", f"{total.commits * all_:,.0f}"
    yield "data files of it", f"{total.files:,.0f}", f"{total.files * all_:,.0f}"
    yield "written", size(round(total.written)), size(round(total.written * all_))
    yield "its log", size(round(total.log_bytes)), size(round(total.log_bytes * all_))
    yield "stored of the rollout", size(round(total.stored_bytes)), size(round(total.stored_bytes * all_))
    yield f"{prices.currency} for reading and computing", f"{total.money:,.0f}", f"{total.money * all_:,.0f}"
    yield f"{prices.currency} a month for the new version", f"{total.monthly:,.0f}", f"{total.monthly * all_:,.0f}"


def _grid(costs: ScaleCosts, prices: Prices) -> Iterator[str]:
    heads = "".join(f" hours with {cores} cores |" for cores in CORES)
    yield f"| a region of |{heads} batches with {FLEET.cores} | its largest, seconds | {prices.currency} |"
    yield f"|---|{'---|' * len(CORES)}---|---|---|"
    for terabytes in SIZES:
        fleet = replace(FLEET, bytes=terabytes * TB)
        by_cores = [region_total(costs, replace(fleet, cores=cores), prices, LIMITS) for cores in CORES]
        total = region_total(costs, fleet, prices, LIMITS)
        hours = " | ".join(f"{each.hours:,.2f}" for each in by_cores)
        yield f"| {terabytes:g} TB | {hours} | {total.batches:,} | {total.batch_seconds:,.0f} | {total.money:,.0f} |"


def _following(hour: HourRecord) -> Iterator[str]:
    yield f"Measured: {hour.rate:,} rows a second for {hour.clock:,} seconds, two tables, one below the other, on two cores ({hour.at}, commit {hour.commit or 'unknown'})."
    yield from ("", "| | an hour | a day |", "|---|---|---|")
    for (what, one), (_, day) in zip(hour.over(HOUR), hour.over(DAY), strict=True):
        yield f"| {what} | {one} | {day} |"
    yield from (
        "",
        "Its model is its own beginning: processor time, commits and bytes of six times the first sixth, from which the whole is to differ by less than a fifth"
        " (part `hour` of [benchmarks.md](benchmarks.md)).",
        "",
        f"Beside that each hourly compaction: after this time it took {hour.compaction_seconds:,.0f} processor seconds and {hour.compaction_bytes / 1e6:,.1f} MB of the logs,"
        " which name each replaced file. Those of a later hour rewrite the day's larger file as well.",
    )


_ASSUMED = (
    "- Rows a second grow with the cores. They were measured with two tasks on one machine; disks, networks and a bucket's requests are not in the model.",
    "- Days are equally large, and so are the hours of a day. The region's rate is known: its first rollout cuts no day that is within `limits.rows` and `limits.bytes`, however long it takes.",
    "- One table is rebuilt. Tables below it read its log, and cost their own rows.",
    "- Spark's driver keeps a table's file list in memory; what a file takes there was not measured, and a survey's Python memory stands for it.",
)


def renew() -> bool:
    """Write the page anew from the records. returns  whether rollouts have been measured"""
    if not RECORD.is_file():
        return False
    prices = project.load(ROOT).region("us").prices
    PAGE.write_text(rendered(ScaleRecord.read(RECORD), prices, hour.known()))
    return True
