"""Our own backfill of one task, from `apply` until it is live and its agent has ended: `python -m tests.bench.other_tools.ours FOLDER`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.bench.other_tools.environments import ROOT

TABLES = ("landing", "requests")
QUERY = "parse_requests.sql"
REGION = "us"


def project(folder: Path, landing: str, limits: Mapping[str, object] | None = None) -> None:
    """A project with the demo's landing table and its requests, which keep every day, and one region with the default policy.

    landing  path of the landing table, which others write; its files are linked
    limits   of the region, by their keys; none for the defaults
    """
    plans, region = folder / "plans" / "web", folder / "regions"
    for place in (plans / "tables", plans / "materializations", region, folder / "lake"):
        place.mkdir(parents=True)
    (plans / "pipeline.yaml").write_text("name: web\n")
    for name in TABLES:
        lines = (ROOT / "plans" / "web" / "tables" / f"{name}.yaml").read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("retention:", "managed:"))]
        (plans / "tables" / f"{name}.yaml").write_text("\n".join(kept) + "\n")
    shutil.copy(ROOT / "plans" / "web" / "materializations" / QUERY, plans / "materializations" / QUERY)
    shutil.copytree(landing, folder / "lake" / "landing", copy_function=os.link)
    lines = [f"name: {REGION}", f"warehouse: {folder / 'lake'}", 'spark: {master: "local[2]"}']
    if limits:
        lines.append(f"limits: {{{', '.join(f'{key}: {value}' for key, value in limits.items())}}}")
    (region / f"{REGION}.yaml").write_text("\n".join(lines) + "\n")


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
