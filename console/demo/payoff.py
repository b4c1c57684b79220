"""The effect of the change in one region, measured there: an endpoint before and after, bytes moved and kept, the way back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.drivers.protocol import Driver
from console.model.live import Release
from console.model.status import Status

ENDPOINT = "requests_by_agent"
NAME_CELLS, FAMILIES = 19, 4
LIMIT = 100


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """An endpoint of one release. rows: None if the release has no such endpoint"""

    release: str
    rows: tuple[tuple[Any, ...], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSizes:
    """Of one release's tables, from their Delta logs. landing, requests: rows;  sizes: path → bytes"""

    landing: int
    requests: int
    sizes: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payoff:
    """Measured when a release went live.

    before, after  the endpoint in the release that was live, and in the one that is
    moved, days    bytes of history that were rewritten, and the days that they hold;  kept  bytes that stayed in place
    previous       of the previous release, which is still fed
    """

    before: EndpointAnswer
    after: EndpointAnswer
    moved: int
    days: int
    kept: int
    previous: TableSizes


async def ask(driver: Driver, pipeline: str, release: Release) -> EndpointAnswer:
    """Call the endpoint, if the release has it.

    release  one without the endpoint, or the live one
    raises   ConsoleError
    """
    from console.planning import compile_query

    endpoint = next((node for node in release.endpoints if node.name == ENDPOINT), None)
    if endpoint is None:
        return EndpointAnswer(release.id, None)
    compiled = compile_query(endpoint.sql, release, endpoint.parameters)
    args = {parameter.name: (str(parameter.default), parameter.type) for parameter in endpoint.parameters}
    answer = await driver.query(pipeline, compiled.sql, compiled.tables, args, LIMIT)
    return EndpointAnswer(release.id, answer.rows)


def measured(warehouse: Path, release: Release) -> TableSizes:
    """The current contents of the release's tables."""
    rows: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for state in release.tables:
        files = DeltaTable(str(warehouse / state.version.path)).get_add_actions(flatten=True)
        rows[state.table.name] = sum(files.column("num_records").to_pylist())
        sizes[state.version.path] = sum(files.column("size_bytes").to_pylist())
    return TableSizes(landing=rows["landing"], requests=rows["requests"], sizes=sizes)


def payoff(
    before: EndpointAnswer, after: EndpointAnswer, status: Status, *, old: TableSizes, new: TableSizes
) -> Payoff:
    """status: of the rollout that was promoted;  old, new: sizes of the tables of the releases before and after"""
    history = [step for step in status.steps if step.history]
    kept = sum(size for path, size in new.sizes.items() if path in old.sizes)
    moved, days = sum(step.bytes for step in history), max((step.slices for step in history), default=0)
    return Payoff(before=before, after=after, moved=moved, days=days, kept=kept, previous=old)


def promoted_lines(payoff: Payoff) -> tuple[str, ...]:
    """For the screen and the summary."""
    previous, old = payoff.previous, payoff.before.release
    return (
        _line(ENDPOINT, f"before, {old}: {families(payoff.before)}"),
        _line("", f"after, {payoff.after.release}: {families(payoff.after)}"),
        _line("bytes", f"{size(payoff.moved)} moved; {size(payoff.kept)} not moved"),
        _line(f"R returns to {old}", f"fed on meanwhile: {previous.requests:,} rows of {previous.landing:,} landed"),
    )


def returned_lines(release: str, sizes: TableSizes, since: int) -> tuple[str, ...]:
    """After a rollback.  since: rows that had landed when the release was promoted that was rolled back"""
    new = sizes.landing - since
    text = f"it has {sizes.requests:,} of {sizes.landing:,} rows, {new:,} of which landed since the promotion"
    return (_line(f"back on {release}", text),)


def families(answer: EndpointAnswer) -> str:
    """`Chrome 612,220 · Firefox 203,114 · 5 more`"""
    if answer.rows is None:
        return "no such endpoint"
    named = [f"{family} {requests:,}" for family, requests, *_ in answer.rows[:FAMILIES]]
    more = len(answer.rows) - FAMILIES
    return " · ".join([*named, *([f"{more} more"] if more > 0 else [])]) or "no rows"


def size(count: float) -> str:
    """`17.3 MB`"""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def _line(name: str, text: str) -> str:
    return f"{name:<{NAME_CELLS}}{text}"
