"""A bug, planted in a copy of the package, and whether its test fails on it.

The copy lies in a temporary folder and is thrown away; the tree itself is never touched. A test that passes on a bug, or
that does not run at all, has not caught it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from console import paths

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Mutant:
    """old → new in one file of the package; env: what switches on a bug that ships (`agent/feeds/planted_bugs`)."""

    name: str
    test: str
    file: str = ""
    old: str = ""
    new: str = ""
    env: dict[str, str] = field(default_factory=dict)


def tried(mutant: Mutant) -> dict[str, object]:
    """Run one mutant's test in a copy; caught if pytest says that a test failed."""
    with tempfile.TemporaryDirectory(prefix="console-mutant-") as place:
        for part in ("console", "tests", "pyproject.toml"):
            source, target = ROOT / part, Path(place) / part
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        if mutant.file:
            patched = Path(place) / mutant.file
            text = patched.read_text()
            if text.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.name}: its place in {mutant.file} is gone; name it anew")
            patched.write_text(text.replace(mutant.old, mutant.new))
        env = {**os.environ, "PYTHONPATH": place, "CONSOLE_JARS": str(paths.jars_dir()), **mutant.env}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test]
        began = time.monotonic()
        done = subprocess.run(
            [*command, f"--basetemp={place}/run"], cwd=place, env=env, capture_output=True, text=True, check=False
        )
        seconds = round(time.monotonic() - began)
    words = [line for line in done.stdout.splitlines() if line.startswith(("E  ", "FAILED", "ERROR"))]
    caught = done.returncode == 1
    return {"mutant": mutant.name, "test": mutant.test, "caught": caught, "seconds": seconds, "said": words[:2]}
