"""A range that several feeds copy in one tick is planned once, and each feed has its own rows of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.feeds import ranges
from console.agent.feeds.live_feed import LiveFeed
from console.agent.feeds.readings import Readings
from console.agent.rows import log_excerpt
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.model.schema import OnRewrite
from tests.faults.rules.tables import SCHEMA, column_values, copying_feed, foreign, rows

pytestmark = [pytest.mark.faults, pytest.mark.spark]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The source of each range that was planned, while `ranges.read` does what it does."""
    sources: list[str] = []
    read = ranges.read

    def noted(session: Any, source: str, *given: Any, **more: Any) -> Any:
        sources.append(source)
        return read(session, source, *given, **more)

    monkeypatch.setattr(ranges, "read", noted)
    return sources


def copy(place: Path, source: str, on_rewrite: OnRewrite = "stop") -> LiveFeed:
    """From the source's first version on, into a table of its own."""
    DeltaTable.create(str(place), schema=SCHEMA, partition_by=["day"])
    return copying_feed(source, str(place), on_rewrite=on_rewrite, start=0)


def hide(table: Path, version: int) -> None:
    """Give a commit's file a name that Spark's own list of files leaves out."""
    commit = table / "_delta_log" / f"{version:020}.json"
    (path,) = [add["path"] for line in commit.read_text().splitlines() if (add := json.loads(line).get("add"))]
    other = str(Path(path).with_name(f"_{Path(path).name}"))
    (table / path).rename(table / other)
    commit.write_text(commit.read_text().replace(path, other))


def excerpts(version: Path) -> list[Path]:
    return list((version / log_excerpt.FOLDER).glob("*"))


def test_feeds_at_one_position_share_what_is_planned_and_have_every_row(
    tmp_path: Path, session: Any, planned: list[str]
) -> None:
    """Also where only Delta can read the range: by an excerpt of the log, in the first feed's target until the tick ends."""
    plain = foreign(tmp_path / "plain", rows(0), rows(1, 2), rows(3, day=2))
    hidden = foreign(tmp_path / "hidden", rows(0), rows(1, 2), rows(3, day=2))
    hide(Path(hidden), 1)
    places = {name: tmp_path / name for name in "abcde"}
    feeds = [copy(places[name], plain) for name in "abc"] + [copy(places[name], hidden) for name in "de"]
    with Readings() as readings:
        for feed in feeds:
            assert feed.step(session, 2, readings=readings) == 3
        assert [name for name, place in places.items() if excerpts(place)] == ["d"]
    assert [column_values(feed.target_path) for feed in feeds] == [[1, 2, 3]] * 5
    assert planned == [plain, hidden]
    assert not [name for name, place in places.items() if excerpts(place)]


def test_feeds_with_another_policy_or_another_position_have_other_rows(
    tmp_path: Path, session: Any, planned: list[str]
) -> None:
    landing = foreign(tmp_path / "landing", rows(0), rows(1), rows(2), rows(9))
    merge = Path(landing) / "_delta_log" / f"{3:020}.json"
    change = {"path": "_change_data/c.parquet", "partitionValues": {"day": "2026-11-01"}, "size": 1}
    merge.write_text(f"{merge.read_text().rstrip()}\n{json.dumps({'cdc': change})}\n")
    ahead = copy(tmp_path / "ahead", landing)
    assert ahead.step(session, 1) == 1
    taking = copy(tmp_path / "taking", landing, on_rewrite="take_inserts")
    ignoring = copy(tmp_path / "ignoring", landing, on_rewrite="ignore")
    planned.clear()
    with Readings() as readings:
        assert ahead.step(session, 2, readings=readings) == 1
        assert taking.step(session, 3, readings=readings) == 3
        assert ignoring.step(session, 3, readings=readings) == 2
    assert column_values(ahead.target_path) == [1, 2]
    assert column_values(taking.target_path) == [1, 2, 9]
    assert column_values(ignoring.target_path) == [1, 2]
    assert planned == [landing] * 3


def test_a_session_that_was_replaced_is_asked_for_nothing(
    tmp_path: Path, spark: SparkHandle, session: Any, planned: list[str]
) -> None:
    landing = foreign(tmp_path / "landing", rows(0), rows(1))
    one, other = (copy(tmp_path / name, landing) for name in ("one", "other"))
    later = spark.session().newSession()
    with Readings() as readings:
        assert one.step(session, 1, readings=readings) == 1
        assert other.step(later, 1, readings=readings) == 1
    assert planned == [landing, landing]
    with Readings() as readings:
        rows_of = readings.rows(later, landing, ranges.Range(first=1, last=1, files=log.commit(landing, 1).added), "")
        assert rows_of.sparkSession is later
