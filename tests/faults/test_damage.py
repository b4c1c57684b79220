"""Commits that a power loss left empty or cut short: no reader skips them, `doctor` names them, a copy repairs them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.store import log
from console.agent.store.ledger import Releases, Rollouts
from console.agent.survey import survey
from console.errors import RegionError
from console.model.event import Entered
from console.model.live import Release

pytestmark = pytest.mark.faults
TABLES = ("landing", "_console/web/releases", "_console/web/rollouts")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one region: four landing commits, two releases, three events; no agent."""
    warehouse = tmp_path / "warehouse"
    for n in range(4):
        write_deltalake(str(warehouse / "landing"), pa.table({"id": [f"e{n}"]}), mode="append")
    DeltaTable(str(warehouse / "landing"), version=2).create_checkpoint()
    releases, rollouts = Releases(warehouse, "web"), Rollouts(warehouse, "web")
    for name in ("r1", "r2"):
        releases.propose(
            Release(id=name, pipeline="web", digest="digest", tables=(), feeds=()), f"web-{name[1:]}", "ada", "laptop"
        )
    releases.swap("", "r1", "ada", "laptop")
    for seq, state in enumerate(("preparing", "backfilling", "validating"), 1):
        rollouts.append("web-2", seq, Entered(state))
    (tmp_path / "regions").mkdir()
    (tmp_path / "regions" / "eu.yaml").write_text("name: eu\nwarehouse: warehouse\n")
    shutil.copytree(Path(__file__).parent / "case" / "before", tmp_path / "plans" / "web")
    return tmp_path


def newest(project: Path, table: str) -> Path:
    return max((project / "warehouse" / table / "_delta_log").glob("*.json"))


@contextmanager
def spoilt(commit: Path, damage: str) -> Iterator[None]:
    whole = commit.read_bytes()
    commit.write_bytes(DAMAGES[damage](whole))
    try:
        yield
    finally:
        commit.write_bytes(whole)


def looked_at(project: Path, table: str) -> Any:
    """What the agent reads of a table before it acts on it."""
    warehouse = project / "warehouse"
    match table:
        case "landing":
            path = str(warehouse / table)
            log.check_intact(path)
            return log.commit(path, log.latest_version(path)).added
        case "_console/web/releases":
            return survey(warehouse, "eu", "web", ["landing"]).release
        case _:
            return Rollouts(warehouse, "web").status().state


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_commit_is_named_and_never_passed_over(project: Path, table: str, damage: str) -> None:
    before = looked_at(project, table)
    commit = newest(project, table)
    with spoilt(commit, damage), pytest.raises(RegionError) as caught:
        looked_at(project, table)
    assert caught.value.code in ("E_LOG_EMPTY", "E_LOG_DAMAGED")
    assert table in str(caught.value)
    if damage == "empty":
        assert f"commit {int(commit.stem)} is empty" in str(caught.value)
    assert looked_at(project, table) == before


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", TABLES)
def test_doctor_names_the_damaged_commit(project: Path, table: str, damage: str) -> None:
    commit = newest(project, table)
    with spoilt(commit, damage):
        output = doctor(project)
    assert (output["ok"], f"{table}: version {int(commit.stem)}" in output["detail"]) == (False, True), output
    assert doctor(project)["ok"]


def doctor(project: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "console.main", "doctor", "--project", str(project), "--output", "json"]
    env = {**os.environ, "CONSOLE_HOME": str(project / "home")}
    data = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout)
    first: dict[str, Any] = next(f for f in data["checks"] if f["name"] == "logs of eu")
    return first
