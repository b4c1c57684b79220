"""Releases of 0.1.0, hundreds of tables of it: the very same files plan nothing on them, whatever rules were corrected since."""

import gzip
import json
from functools import cache
from typing import Any

import pytest

from console.model.codec import decode
from console.model.live import Day, Live, Release, TableStats
from console.model.pipeline import Pipeline
from console.model.region import Region
from console.planning import plan
from tests.versions.stored import HERE, VERSIONS

pytestmark = pytest.mark.slow

DAYS = (Day("2026-11-01", 1000, 9000),)


@cache
def kept(version: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress((HERE / version / "releases.json.gz").read_bytes()))
    return data


@pytest.mark.parametrize(("version", "name"), [(version, name) for version in VERSIONS for name in kept(version)])
def test_a_pipeline_that_nobody_edited_plans_nothing_on_its_release(version: str, name: str) -> None:
    entry = kept(version)[name]
    pipeline, release = decode(Pipeline, entry["pipeline"]), decode(Release, entry["release"])
    stats = tuple(
        TableStats(
            name=s.table.name,
            path=s.version.path,
            version=3,
            rows=1000,
            bytes=9000,
            files=2,
            columns=s.version.columns,
            partition_by=s.version.partition_by,
            days=DAYS,
        )
        for s in release.tables
    )
    live = Live(region="eu", pipeline=pipeline.name, release=release, releases=(), stats=stats, rows_per_second=1000.0)
    done = plan(pipeline, live, Region(name="eu", warehouse="/warehouse"), "test", planner="ours")
    assert [(node.name, node.action, node.why) for node in done.changes] == []
    assert done.steps == ()
