"""A file that is half way in when its agent is killed and the table's columns get other names. No Java: nothing is followed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.agent.store.ledger import Releases
from console.model.live import Intake, TableState
from tests.agent.test_ingest import LINES, IngestProject, events, ids

pytestmark = pytest.mark.slow
OTHERS = {"id": "key", "n": "count", "region": "region", "ts": "at"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[IngestProject]:
    project = IngestProject(tmp_path)
    yield project
    project.console("follow", "--stop")


def renamed(state: TableState) -> TableState:
    columns = tuple(replace(column, name=OTHERS[column.name]) for column in state.table.columns)
    intake = tuple(Intake(new, (old,)) for old, new in OTHERS.items())
    return replace(state, table=replace(state.table, columns=columns), intake=intake)


@pytest.mark.parametrize(
    "point", ["after-commit-landing", pytest.param("before-commit-landing", marks=pytest.mark.soak)]
)
def test_killed_then_promoted_then_rolled_back_the_same_file_lands_once(project: IngestProject, point: str) -> None:
    lines, releases = events(LINES), Releases(project.lake, "web")
    assert project.ingest(lines[:2])[0] == 0  # an agent runs
    (project.armed / point).touch()
    assert project.ingest(lines)[0] == 5
    assert len(project.ids()) < LINES

    live = next(stored.release for stored in releases.all())
    releases.propose(replace(live, id="r2", tables=tuple(map(renamed, live.tables))), "web-2", "ada", "laptop")
    releases.swap("r1", "r2", "ada", "laptop")
    assert project.ingest(lines)[0] == 0
    assert project.ids() == ids(LINES)
    newer = [line.replace('"id"', '"key"').replace('"n"', '"count"').replace('"ts"', '"at"') for line in lines[:100]]
    assert project.ingest(newer[:60] + lines[60:100], "--load", "again") == (0, "landing: 100 rows added\n")

    releases.swap("r2", "r1", "ada", "laptop")
    assert project.ingest(lines) == (0, f"landing: already there, nothing added ({LINES:,} lines)\n")
    assert project.ingest(newer, "--load", "newer") == (0, "landing: 100 rows added\n")
    assert project.ids() == sorted([*ids(LINES), *ids(100), *ids(100)])
