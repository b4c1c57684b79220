"""A demo starts in an empty folder, with the repository's project, and in no other."""

from pathlib import Path

import pytest

from console.demo.folder import project_root
from console.demo.prepare import Demo
from console.errors import UsageError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def files(root: Path) -> dict[str, bytes]:
    results = [path for top in ("regions", "plans") for path in (root / top).rglob("*") if path.is_file()]
    return {
        name: path.read_bytes()
        for path in results
        if not (name := str(path.relative_to(root))).startswith("plans/saved")
    }


def test_an_empty_folder_gets_the_repositorys_own_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    root = project_root(None)
    assert root == tmp_path
    assert files(root) == files(ROOT)
    assert [region.name for region in Demo.of(root).regions] == ["us", "ap", "eu"]
    (root / "regions" / "eu.yaml").unlink()
    assert project_root(None) == root, "a second call goes on with what is there"
    assert not (root / "regions" / "eu.yaml").exists()


def test_a_folder_that_is_named_is_made(tmp_path: Path) -> None:
    assert Demo.of(project_root(tmp_path / "new")).regions


def test_another_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    for named in (None, tmp_path):
        with pytest.raises(UsageError, match="other files"):
            project_root(named)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
