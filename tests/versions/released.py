"""Releases as the planner of another commit makes them: of every pipeline kept at that commit, and of ours.

    PYTHONPATH=CHECKOUT python tests/versions/released.py OUT.json.gz FOLDER…

Run by `build.py` in front of a checkout. An entry is a pipeline with its first release, both as `codec` writes them; what that
commit cannot plan is left out.
"""

import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import console
from console import planning, project
from console.errors import Problems
from console.model import codec
from console.model.live import Day, Live, TableStats
from console.model.pipeline import Pipeline
from console.model.plan import numbered
from console.model.region import Region
from tests.planning.evolution import adapt

DAYS = (Day("2026-11-01", 1000, 9000),)


def read(folder: Path) -> Pipeline:
    """A pipeline from its files."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "regions").mkdir()
        (root / "regions" / "eu.yaml").write_text("name: eu\nwarehouse: warehouse\n")
        message = yaml.safe_load((folder / "pipeline.yaml").read_text()) or {}
        name = str(message.get("name", "web"))
        shutil.copytree(folder, root / "plans" / name)
        loaded = project.load(root)
        return loaded.pipeline(name, loaded.regions[0])


def pipelines(folders: list[Path]) -> Iterator[tuple[str, Pipeline]]:
    for folder in folders:
        yield "/".join(folder.parts[-3:]), read(folder)
    for name, case in adapt.load().items():
        for side in ("before", "after"):
            yield f"evolution/{name}/{side}", adapt.pipeline(case[side])


def released(pipeline: Pipeline) -> dict[str, Any]:
    landing = tuple(
        TableStats(
            name=t.name,
            path=t.name,
            version=3,
            rows=1000,
            bytes=9000,
            files=2,
            columns=t.columns,
            partition_by=t.partition_by,
            days=DAYS,
        )
        for t in pipeline.tables
        if t.kind == "landing"
    )
    start = Live(region="eu", pipeline=pipeline.name, release=None, releases=(), stats=landing, rows_per_second=1000.0)
    plan = numbered(planning.plan(pipeline, start, Region(name="eu", warehouse="/warehouse"), console.__version__), 1)
    return {"pipeline": codec.encode(pipeline), "release": codec.encode(plan.release)}


def main(out: str, *folders: str) -> None:
    results: dict[str, Any] = {}
    for name, pipeline in pipelines([Path(folder) for folder in folders]):
        try:
            results[name] = released(pipeline)
        except Problems:
            continue
    text = json.dumps(results, separators=(",", ":"), sort_keys=True)
    Path(out).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(results)} releases", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
