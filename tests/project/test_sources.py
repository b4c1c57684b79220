"""A release stores the files that it was made from, byte by byte."""

import base64
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from console import planning, project
from console.errors import DataError
from console.model import codec
from console.model.live import Live, Release
from console.model.pipeline import Pipeline
from console.model.sources import Sources

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("plans", "regions"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def desired(root: Path) -> Pipeline:
    loaded = project.load(root)
    return loaded.pipeline("web", loaded.region("us"))


def released(root: Path) -> Release:
    loaded = project.load(root)
    region = loaded.region("us")
    return planning.plan(desired(root), Live(region="us", pipeline="web", release=None), region, "test").release


def written(root: Path) -> dict[str, str]:
    """All that is ours below the pipeline's folder; tests, calls and migrations have readers of their own."""
    folder = root / "plans" / "web"
    results = [*folder.glob("pipeline.yaml"), *folder.glob("tables/*.yaml"), *folder.rglob("*.sql")]
    names = {path.relative_to(folder).as_posix(): path for path in results}
    return {n: path.read_text() for n, path in names.items() if not n.startswith(("tests/", "migrations/"))}


@pytest.mark.slow
def test_a_release_holds_every_file_as_it_was_written(root: Path) -> None:
    sources = codec.decode(Release, codec.loads(codec.dumps(released(root)))).sources
    assert sources
    assert sources.texts() == written(root)
    assert "tables/requests.yaml" in sources.texts()


def test_a_comment_is_kept_and_changes_nothing(root: Path) -> None:
    before = desired(root)
    table = root / "plans/web/tables/requests.yaml"
    table.write_text(f"# why, in words of ours: Zürich\n{table.read_text()}")
    after = desired(root)
    assert after.digest() == before.digest()
    assert after.sources
    assert after.sources != before.sources
    assert after.sources.texts()["tables/requests.yaml"].startswith("# why, in words of ours: Zürich\n")


def test_files_that_were_damaged_are_told_and_never_taken_for_others() -> None:
    kept = Sources.of({"pipeline.yaml": "", "tables/t.yaml": "columns: {n: bigint}\n"})
    assert list(kept.texts()) == ["pipeline.yaml", "tables/t.yaml"]
    other = base64.b64encode(zlib.compress(b'{"pipeline.yaml":"x"}')).decode()
    for packed in ("", "?", kept.packed[:20], other, base64.b64encode(b"nothing").decode()):
        with pytest.raises(DataError) as caught:
            replace(kept, packed=packed).texts()
        assert caught.value.code == "E_SOURCES"
