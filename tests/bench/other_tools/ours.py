"""Our own backfill of one task, from `apply` until it is live and its agent has ended: `python -m tests.bench.other_tools.ours FOLDER`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.bench import demo_rows

LAKE = "lake"
REGION = "us"


def project(folder: Path, landing: str) -> None:
    """A project of the demo's requests over a landing table of others, and one region with the default policy.

    landing  path of the landing table, whose files are linked
    """
    demo_rows.put(folder, demo_rows.files())
    (folder / "regions").mkdir()
    (folder / "regions" / f"{REGION}.yaml").write_text(f"name: {REGION}\nwarehouse: {LAKE}\n")
    shutil.copytree(landing, folder / LAKE / "landing", copy_function=os.link)


def console(folder: Path, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """raises SystemExit with what it printed if it fails"""
    command = [sys.executable, "-P", "-m", "console.main", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise SystemExit(f"console {' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def main(folder: str) -> None:
    place = Path(folder)
    try:
        console(place, "apply", "--yes")
    finally:
        console(place, "follow", "--region", REGION, "--stop", check=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
