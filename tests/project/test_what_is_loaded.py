"""What reading a project loads: neither PyYAML for files that are simple, nor what other packages would plug into pydantic."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "regions/eu.yaml": "name: eu\nwarehouse: w\n",
    "plans/web/pipeline.yaml": "description: one table\n",
    "plans/web/tables/landing.yaml": "kind: landing\ntime: ts\ncolumns: {id: string, ts: timestamp}\n",
}

PLUGIN = """
class Plugin:
    def new_schema_validator(self, *given, **named):
        return None, None, None
plugin = Plugin()
"""


def loaded_after(code: str, *paths: Path) -> set[str]:
    """Modules that a fresh interpreter has loaded after running this. paths: searched for packages as well"""
    script = f"import sys; sys.path += {[str(path) for path in paths]}\n{code}\nprint(*sys.modules)"
    # without what this process has set for its own children
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYDANTIC_")}
    line = [sys.executable, "-c", script]
    done = subprocess.run(line, cwd=ROOT, env=outside, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def project(root: Path, files: dict[str, str]) -> str:
    """The statement that loads it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return f"from pathlib import Path; from console import project; project.load(Path({str(root)!r}))"


def test_simple_files_are_read_without_pyyaml(tmp_path: Path) -> None:
    assert "yaml" not in loaded_after(project(tmp_path, FILES))
    anchored = {"regions/eu.yaml": "name: eu\nwarehouse: &home w\n"}
    assert "yaml" in loaded_after(project(tmp_path, anchored))


def test_no_other_package_is_asked_what_a_file_means(tmp_path: Path) -> None:
    metadata = tmp_path / "packages" / "plugged-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[pydantic]\nplugged = plugged:plugin\n")
    (tmp_path / "packages" / "plugged.py").write_text(PLUGIN)
    bare = "from pydantic import BaseModel\nclass Doc(BaseModel):\n  a: int = 0\nDoc()"
    assert "plugged" in loaded_after(bare, tmp_path / "packages")
    assert "plugged" not in loaded_after(project(tmp_path / "files", FILES), tmp_path / "packages")


def test_commands_of_projects_without_replication_load_no_dialect() -> None:
    for command in ("status", "gate", "plan_apply"):
        loaded = loaded_after(f"import console.cli.commands.rollout.{command}")
        assert {name for name in loaded if name.startswith(("console.propagation", "console.stores"))} == set()
