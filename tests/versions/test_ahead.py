"""What a version ahead of this one stores and says: its optional fields are ignored, its required ones refused with its version."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from console import __version__, open_release
from console.drivers.local import LocalDriver
from console.errors import NewerFormat
from console.model.codec import encode
from console.model.event import Entered, Recorded
from tests.drivers.test_local import agent, place
from tests.versions import ahead, test_older
from tests.versions.stored import PIPELINE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ahead.tree(tmp_path_factory.mktemp("ahead"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def python(*words: str, tree: Path = ahead.ROOT) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(tree), str(ahead.ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def carried(tree: Path, root: Path, kind: str) -> None:
    done = python("-m", "tests.versions.ahead", str(root), kind, tree=tree)
    assert done.returncode == 0, done.stderr


def console(root: Path, *words: str, tree: Path = ahead.ROOT) -> subprocess.CompletedProcess[str]:
    return python("-m", "console.main", *words, "--project", str(root), tree=tree)


def read(root: Path, tree: Path = ahead.ROOT) -> None:
    """By the commands that read; no agent has made the tables, so that its feeds stand still."""
    status = console(root, "status", "--output", "json", tree=tree)
    region = json.loads(status.stdout)["regions"][0]
    assert (status.returncode, region["state"], region["live"]) == (1, "live", "r1")
    for words in (("history",), ("show", f"{PIPELINE}-1"), ("plan", "--output", "json")):
        done = console(root, *words, tree=tree)
        assert done.returncode == 0, done.stdout + done.stderr


def texts(root: Path) -> str:
    """All that was stored, rows and what stands beside them."""
    stored = root / "warehouse" / "_console"
    return "".join(str(sorted(path.read_bytes() for path in stored.rglob(f"*.{kind}"))) for kind in ("parquet", "json"))


def test_what_a_newer_version_has_added_is_passed_over(tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "newer"
    carried(tree, root, "optional")
    beside = "".join(path.read_text() for path in (root / f"warehouse/_console/{PIPELINE}/beside").iterdir())
    assert all(word in beside for word in ("weather", "fog", "heat"))
    assert '"calm"' not in beside
    rows = DeltaTable(str(root / f"warehouse/_console/{PIPELINE}/rollouts")).to_pyarrow_table().to_pylist()
    assert [row["event"] for row in rows if '"calm":true' in row["event"]]
    before = texts(root)
    read(root)
    assert open_release(warehouse=str(root / "warehouse"), pipeline=PIPELINE).tables
    assert texts(root) == before


@pytest.mark.parametrize(("kind", "word"), [("needed", "sealed"), ("blessed", "Blessed")])
def test_what_would_be_misread_is_refused_with_both_versions_and_what_to_do(
    kind: str, word: str, tree: Path, tmp_path: Path
) -> None:
    root = tmp_path / "newer"
    carried(tree, root, kind)
    before = texts(root)
    for words in (("status",), ("plan",), ("apply", "--yes")):
        done = console(root, *words)
        output = " ".join((done.stdout + done.stderr).split())
        assert done.returncode != 0, output
        assert f"`{word}` came with console {ahead.VERSION}, and this is console {__version__}" in output, words
        assert f"use console {ahead.VERSION} or newer here" in output, words
    assert texts(root) == before


def test_what_this_version_stores_is_its_own_to_a_newer_one(tree: Path, tmp_path: Path) -> None:
    root = tmp_path / "ours"
    test_older.carried(root)
    read(root, tree=tree)


async def test_a_fleeting_event_that_only_a_newer_version_knows_is_passed_over_and_a_stored_one_refused(
    tree: Path, tmp_path: Path
) -> None:
    done = python("-m", "tests.versions.ahead", "words", tree=tree)
    fleeting, kept = map(json.loads, done.stdout.splitlines())
    known = encode(Recorded("web-1", 1, 5.0, Entered("preparing")))
    messages = [{"result": {}}, *({"method": "event", "params": event} for event in (fleeting, known, kept))]
    region = place(tmp_path)
    async with agent(region, watch=lambda _: messages):
        events = aiter(LocalDriver(region).watch("web"))
        assert (await anext(events)).event == Entered("preparing")
        with pytest.raises(NewerFormat, match=f"`Blessed` came with console {ahead.VERSION}"):
            await anext(events)
