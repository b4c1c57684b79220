"""`console init` writes a project that passes its own check, and writes over nothing."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring, real_drivers


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), obj=CliContext(Wiring(real_drivers)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    place = tmp_path / "new"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.mark.slow
def test_what_it_writes_passes_check_and_is_planned(folder: Path) -> None:
    before = os.umask(0)
    try:
        done = call("init", "--output", "json")
    finally:
        os.umask(before)
    assert done.exit_code == 0, done.output
    written = json.loads(done.stdout)
    assert written["folder"] == str(folder)
    results = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert sorted(written["files"]) == results
    checked = call("check")
    assert checked.exit_code == 0, checked.output
    planned = call("plan")
    assert planned.exit_code == 0, planned.output
    assert planned.stdout.splitlines()[-1] == "Plan: 1 region, 4 create"
    assert "warning" not in planned.stdout
    for file in folder.rglob("*.yaml"):
        assert "# " in file.read_text(), f"{file} explains nothing"


@pytest.mark.slow
def test_it_makes_the_folder_that_is_named_and_leaves_what_is_there(folder: Path) -> None:
    place = folder / "a" / "b"
    assert call("init", "--project", str(place)).exit_code == 0
    assert call("check", "--project", str(place)).exit_code == 0
    (folder / ".gitignore").write_text("mine\n")
    (folder / "README.md").write_text("mine\n")
    assert call("init", "--quiet").exit_code == 0
    assert (folder / ".gitignore").read_text() == (folder / "README.md").read_text() == "mine\n"


@pytest.mark.parametrize("there", ["regions/eu.yaml", "plans/web/pipeline.yaml", "events.ndjson"])
def test_it_refuses_to_overwrite_and_writes_nothing(there: str, folder: Path) -> None:
    (folder / there).parent.mkdir(parents=True, exist_ok=True)
    (folder / there).write_text("mine\n")
    done = call("init")
    assert done.exit_code == 64
    assert there.partition("/")[0] in done.stderr
    assert [path.read_text() for path in folder.rglob("*") if path.is_file()] == ["mine\n"]
