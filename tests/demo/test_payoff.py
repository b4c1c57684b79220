"""The demo's lines after a promotion and after a rollback are measured in the tables."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.demo import payoff
from console.demo.payoff import EndpointAnswer
from console.drivers.fake import FakeDriver, FakeRegion
from console.model.live import Live, Release, TableState, Version
from console.model.region import Region
from console.model.schema import Table
from console.model.status import Status
from console.model.step_status import StepStatus


def release(**paths: str) -> Release:
    """table: its path"""
    states = tuple(
        TableState(
            table=Table(name=name, kind="append", columns=()), version=Version(content="", path=path, columns=()),
            read="", rows="", values={},
        )
        for name, path in paths.items()
    )  # fmt: skip
    return Release(id="r1", pipeline="web", digest="", tables=states, feeds=())


FAMILIES = (
    ("Chrome", 612_220, 0, 9),
    ("Firefox", 203_114, 0, 9),
    ("Crawler", 99_201, 99_201, 9),
    ("Safari", 5, 0, 1),
    ("Other", 1, 0, 1),
)
OLD = payoff.TableSizes(
    landing=1_560_003, requests=1_560_001, sizes={"landing": 160_000_000, "hours/a-1": 200_000, "requests/a-1": 9}
)
NEW = payoff.TableSizes(
    landing=1_560_003,
    requests=1_560_002,
    sizes={"landing": 160_000_000, "hours/a-1": 200_000, "requests/b-2": 17_000_000},
)


def status(*steps: StepStatus) -> Status:
    return Status(rollout="web-2", release="r2", was="r1", state="live", steps=steps)


def test_after_a_promotion_it_tells_the_endpoint_before_and_after_what_moved_and_the_way_back() -> None:
    steps = (
        StepStatus(id="create/requests"),
        StepStatus(id="backfill/requests/parse", bytes=17_300_000, slices=14, rows_done=9),
    )
    result = payoff.payoff(EndpointAnswer("r1", None), EndpointAnswer("r2", FAMILIES), status(*steps), old=OLD, new=NEW)
    assert payoff.promoted_lines(result) == (
        "requests_by_agent  before, r1: no such endpoint",
        "                   after, r2: Chrome 612,220 · Firefox 203,114 · Crawler 99,201 · Safari 5 · 1 more",
        "bytes              17.3 MB moved; 160.2 MB not moved",
        "R returns to r1    fed on meanwhile: 1,560,001 rows of 1,560,003 landed",
    )


def test_after_a_rollback_it_counts_the_rows_that_have_landed_since_the_promotion() -> None:
    assert payoff.returned_lines("r1", OLD, 1_555_000) == (
        "back on r1         it has 1,560,001 of 1,560,003 rows, 5,003 of which landed since the promotion",
    )


async def test_a_release_without_the_endpoint_is_not_asked() -> None:
    region = Region(name="eu", warehouse="/data/eu")
    driver = FakeDriver(FakeRegion(region, Live(region="eu", pipeline="web", release=None)))
    release = Release(id="r1", pipeline="web", digest="", tables=(), feeds=())
    assert await payoff.ask(driver, "web", release) == EndpointAnswer("r1", None)
    assert driver.calls == []


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (999, "999 B"), (17_300_000, "17.3 MB"), (2.5e9, "2.5 GB"), (2.5e13, "25000.0 GB")]
)
def test_sizes_are_told_in_decimal_units(number: float, text: str) -> None:
    assert payoff.size(number) == text


def test_rows_and_bytes_are_those_of_the_tables_logs(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "landing"), pa.table({"id": ["a", "b", "c"]}))
    write_deltalake(str(tmp_path / "requests/a-1"), pa.table({"id": ["a", "b"]}))
    result = payoff.measured(tmp_path, release(landing="landing", requests="requests/a-1"))
    assert (result.landing, result.requests) == (3, 2)
    on_disk = {p: sum(f.stat().st_size for f in (tmp_path / p).glob("*.parquet")) for p in ("landing", "requests/a-1")}
    assert result.sizes == on_disk
