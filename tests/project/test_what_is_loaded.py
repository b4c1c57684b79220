"""What a command loads: not what other packages would plug into pydantic, and no dialect without a replication."""

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


def written(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_no_other_package_is_asked_what_a_file_means_and_programs_that_import_ours_keep_their_plugins(
    tmp_path: Path,
) -> None:
    metadata = tmp_path / "packages" / "plugged-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[pydantic]\nplugged = plugged:plugin\n")
    (tmp_path / "packages" / "plugged.py").write_text(PLUGIN)
    files = written(tmp_path / "files")
    library = f"from pathlib import Path; from console import project; project.load(Path({str(files)!r}))"
    command = (
        f"sys.argv = ['console', 'check', '--project', {str(files)!r}]\nfrom console.main import main\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0, end.code"
    )
    assert "plugged" in loaded_after(library, tmp_path / "packages")
    assert "plugged" not in loaded_after(command, tmp_path / "packages")


def test_commands_of_projects_without_replication_load_no_dialect() -> None:
    for command in ("status", "gate", "plan_apply"):
        loaded = loaded_after(f"import console.cli.commands.rollout.{command}")
        assert {name for name in loaded if name.startswith(("console.propagation", "console.stores"))} == set()
