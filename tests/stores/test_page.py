"""docs/schema.md can be followed from an empty folder on, without Java."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent


def steps() -> list[str]:
    """The commands of the page's section, in order."""
    page = (ROOT / "docs" / "schema.md").read_text()
    block = page.partition("## From an empty folder")[2].partition("\n## ")[0]
    return [line[4:] for line in block.splitlines() if line.startswith("    ")]


@pytest.mark.stores
def test_the_page_begins_in_an_empty_folder_and_ends_with_the_new_column(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(steps()),
        cwd=tmp_path,
        env={
            "PATH": path,
            "HOME": str(tmp_path),
            "CONSOLE_HOME": str(tmp_path / "home"),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[{'id': 1, 'title': 'first', 'kind': 'bug'}]"
    assert "java" not in path
