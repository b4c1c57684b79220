"""A landing table with reader features that we do not support: the survey lists them, and the plan refuses the table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.rows.demands import required_features
from console.agent.survey import survey
from console.errors import Problems, RegionError, Unreachable
from tests.planning.world import pipeline, planned

pytestmark = pytest.mark.slow

V3 = {"minReaderVersion": 3, "minWriterVersion": 7}


def demand(place: Path, protocol: dict[str, Any]) -> None:
    """A commit by which the table asks more of its readers from now on."""
    version = DeltaTable(str(place)).version() + 1
    (place / "_delta_log" / f"{version:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")


def landing(warehouse: Path) -> Path:
    write_deltalake(str(warehouse / "landing"), pa.table({"id": ["a"]}))
    return warehouse / "landing"


@pytest.mark.parametrize(
    ("protocol", "reader"),
    [
        ({**V3, "readerFeatures": ["farFuture"], "writerFeatures": ["farFuture"]}, ["farFuture"]),
        ({**V3, "readerFeatures": ["catalogManaged"], "writerFeatures": ["catalogManaged"]}, ["catalogManaged"]),
        ({"minReaderVersion": 4, "minWriterVersion": 8}, ["reader version 4"]),
    ],
)
def test_what_a_table_demands_of_its_readers_is_told_and_refused_by_its_name(
    tmp_path: Path, protocol: dict[str, Any], reader: Sequence[str]
) -> None:
    demand(landing(tmp_path), protocol)
    live = survey(tmp_path, "eu", "web", ["landing"])
    assert [(table.name, list(table.reader), table.columns) for table in live.stats] == [("landing", reader, ())]
    with pytest.raises(Problems) as refused:
        planned(pipeline(), live)
    assert [problem.code for problem in refused.value.problems] == ["C127"]
    assert reader[0] in str(refused.value)


def test_it_is_told_from_a_checkpoint_where_the_commits_are_cleaned_up(tmp_path: Path) -> None:
    place = landing(tmp_path)
    DeltaTable(str(place)).create_checkpoint()
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"]}}
    assert required_features(str(place)) == set()
    (place / "_delta_log" / f"{0:020}.json").unlink()
    assert required_features(str(place)) == set()
    (place / "_delta_log" / f"{1:020}.checkpoint.0-0-0-0-0.json").write_text(json.dumps(action) + "\n")
    assert required_features(str(place)) == {"v2Checkpoint"}


def test_a_table_that_is_only_damaged_is_no_table_of_another_kind(tmp_path: Path) -> None:
    place = landing(tmp_path)
    demand(place, {**V3, "readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]})
    (place / "_delta_log" / f"{2:020}.json").write_text('{"add": {"pa')
    with pytest.raises(Unreachable, match="landing"):
        survey(tmp_path, "eu", "web", ["landing"])


def test_a_landing_table_behind_a_link_to_where_none_can_lie_is_refused_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "events[1]").mkdir()
    (tmp_path / "landing").symlink_to(tmp_path / "events[1]")
    with pytest.raises(RegionError, match=r"landing.*'\['") as refused:
        survey(tmp_path, "eu", "web", ["landing"])
    assert refused.value.code == "E_PATH"
