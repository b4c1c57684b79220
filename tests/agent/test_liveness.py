"""Findings about a feed whose live rows cannot be recounted: none arrived, or the source no longer has them. No Java."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.errors import AnalysisException, NumberFormatException

from console.agent.receipts.audit import Audit
from console.agent.recount import liveness
from console.agent.recount import sample as samples
from console.agent.recount.live import RecountResult, pinned_feed
from console.model.live import Release
from console.model.step import CatchUp
from tests.faults.rules.tables import SCHEMA, commit_rows, copying_feed, foreign, number, rows

pytestmark = pytest.mark.slow


def asked(place: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> RecountResult:
    """What is said of a source where to compute its rows again ends like this."""
    landing, copy = foreign(place / "landing", rows(0), rows(1)), str(place / "copy")
    DeltaTable.create(copy, schema=SCHEMA, partition_by=["day"])

    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(liveness, "_compared", fails)
    return liveness.quiet(None, pinned_feed(copying_feed(landing, copy), {}), fails)


def test_a_value_at_which_a_live_feed_stops_by_name_is_told_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "[CAST_INVALID_INPUT] The value 'ada@example.org' of the type \"STRING\" cannot be cast. SQLSTATE: 22018"
    finding = asked(tmp_path, monkeypatch, NumberFormatException(message))
    assert finding.ok is True
    assert "a live feed would stop there" in finding.detail
    assert "ada@" not in finding.detail


def test_rows_that_the_live_path_cannot_move_for_another_reason_do_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = asked(tmp_path, monkeypatch, AnalysisException("[DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION] cannot cast"))
    assert finding.ok is None
    assert "DATATYPE_MISMATCH" in finding.detail


def test_of_a_log_that_was_cleaned_up_only_what_it_holds_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = foreign(tmp_path / "landing", rows(0), rows(1))
    DeltaTable(landing).optimize.compact()
    DeltaTable(landing).create_checkpoint()
    for version in (0, 1):
        Path(landing, "_delta_log", f"{version:020}.json").unlink()
    copy = str(tmp_path / "copy")
    DeltaTable.create(copy, schema=SCHEMA, partition_by=["day"])
    finding = liveness.quiet(
        None, pinned_feed(copying_feed(landing, copy), {}), lambda *_: pytest.fail("nothing to be tried")
    )
    assert (finding.ok, finding.detail) == (
        True,
        "quiet: none of the last 500 commits that landing's log still holds could have been a live one",
    )


def test_verify_says_that_no_live_row_came_only_while_the_log_tells_all_commits(tmp_path: Path) -> None:
    feed = copying_feed(foreign(tmp_path / "landing", rows(0)), foreign(tmp_path / "copy", rows(0), rows(1)))
    release = Release(id="r1", pipeline="web", digest="d", tables=(feed.source, feed.target), feeds=(feed.spec,))
    plan: Any = SimpleNamespace(release=release, pipeline="web", live="")
    audit, step = Audit(tmp_path, plan, None), CatchUp("every", "landing", "copy", "fence")
    [live] = audit.checks(step, (), "web-1")
    assert (live.run().ok, live.run().detail) == (True, "no live row has arrived yet")
    DeltaTable(feed.target_path).create_checkpoint()
    Path(feed.target_path, "_delta_log", f"{0:020}.json").unlink()
    assert live.run().ok is None


def test_a_live_commit_of_files_that_nobody_counted_is_one_as_well(tmp_path: Path) -> None:
    copy = foreign(tmp_path / "copy", rows(0))
    note: dict[str, Any] = {"kind": "live", "from": 1, "to": 1, "rows_in": 0}
    commit_rows(copy, "live/x", number(1, 1), rows(1, 2, 3), **note)
    commit_rows(copy, "live/x", number(2, 1), rows(), kind="take-over")
    assert [(moved.version, moved.rows) for moved in samples.live_commits(copy, "live/x")] == [(1, 3)]


def test_of_a_quiet_source_no_commit_is_computed_again_that_is_too_large_by_its_bytes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing, copy = foreign(tmp_path / "landing", rows(*range(50_000))), str(tmp_path / "copy")
    newest = Path(landing, "_delta_log", f"{0:020}.json")
    newest.write_text(newest.read_text().replace('"stats":', '"was":'))
    DeltaTable.create(copy, schema=SCHEMA, partition_by=["day"])
    monkeypatch.setattr(liveness, "BYTES", 1000)
    finding = liveness.quiet(
        None, pinned_feed(copying_feed(landing, copy), {}), lambda *_: pytest.fail("it is too large")
    )
    assert (finding.ok, "too large to be computed again" in finding.detail) == (True, True)
