"""A version's directory is dropped as a whole, whatever a killed agent left beside it. No Java."""

import os
from pathlib import Path

import pytest

from console.agent.store.housekeeping import drop_version

pytestmark = pytest.mark.slow


def version(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "part.parquet").touch()
    return place


def test_a_version_is_dropped_beside_what_a_dead_agent_with_our_number_was_dropping(tmp_path: Path) -> None:
    (tmp_path / "_console").mkdir()
    (tmp_path / "_console" / "marker.json").write_text("{}")
    ours = version(tmp_path / "requests" / "v-3")
    version(ours.with_name(f".dropped-v-3-{os.getpid()}"))  # in a container every agent may be number 1
    other = version(tmp_path / "requests" / "v-4")
    assert drop_version(tmp_path, "requests/v-3")
    assert list(other.parent.iterdir()) == [other]
    assert not drop_version(tmp_path, "requests/v-3")
