"""Landing tables and folders that no feed can follow: refused by name, before anything is written."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from console import project
from console.errors import Problems

UNFIT = ("w[1]", "w]", "w^", "w|", "w%41", "w%2Fx")
CODES = {"feature": "C127", "catalog": "C127", "version": "C127", "nanoseconds": "C128"}
REPORTED = {"feature": ["farFuture"], "catalog": ["catalogManaged"]}


@dataclass(frozen=True)
class Refused:
    """One such table. In the pipeline's files it looks like any other."""

    number: int
    what: str
    days: bool = False
    after: str = ""
    target: str = ""
    sql: str = "SELECT id, ts"

    @property
    def code(self) -> str:
        return CODES[self.what]

    @property
    def columns(self) -> dict[str, str]:
        return {"id": "bigint", "ts": "timestamp"}

    copied = columns


def refused(chance: random.Random, first: int, warehouse: Path) -> list[Refused]:
    """One table of each kind, numbered from `first`, written by hand."""
    kinds = chance.sample(sorted(CODES), k=len(CODES))
    made = [Refused(first + at, what, chance.random() < 0.5) for at, what in enumerate(kinds)]
    for each in made:
        _write(warehouse / f"l{each.number}", each.what)
    return made


def unwritten(chance: random.Random, root: Path) -> Iterator[str]:
    """What is wrong of a region whose tables cannot lie where its file says, itself or behind a link."""
    name = chance.choice(UNFIT)
    place = root / name
    place.mkdir(parents=True)
    (root / "link").symlink_to(place)
    for at, warehouse in enumerate((str(place), str(root / "link"), f"../{name}")):
        files = root / f"project{at}"
        (files / "regions").mkdir(parents=True)
        (files / "plans" / "web").mkdir(parents=True)
        (files / "plans" / "web" / "pipeline.yaml").write_text("name: web\n")
        (files / "regions" / "eu.yaml").write_text(f"name: eu\nwarehouse: {json.dumps(warehouse)}\n")
        try:
            project.load(files)
            yield f"no refusal of {warehouse}"
        except Problems as problems:
            codes = [problem.code for problem in problems.problems]
            if codes != ["P040"]:
                yield f"{warehouse} is refused by {codes}"
    if list(place.iterdir()):
        yield f"{place}: something was written there"


def _write(place: Path, what: str) -> None:
    data = pa.table({"id": pa.array([1, 2], pa.int64()), "ts": pa.array([1, 1_001], pa.timestamp("ns", "UTC"))})
    if what != "nanoseconds":
        data = data.set_column(1, "ts", pa.array([1, 2], pa.timestamp("us", "UTC")))
    log = place / "_delta_log"
    log.mkdir(parents=True)
    pq.write_table(data, place / "one.parquet", version="2.6")
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in (("id", "long"), ("ts", "timestamp"))]  # fmt: skip
    report = REPORTED.get(what, [])
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if report:
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": report, "writerFeatures": report}
    if what == "version":
        protocol = {"minReaderVersion": 4, "minWriterVersion": 8}
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1_793_000_000_000, "operation": "WRITE", "operationParameters": {}}},
        {"protocol": protocol},
        {
            "metaData": {
                "id": f"00000000-0000-0000-0000-{len(what):012}", "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": [],
                "configuration": {}, "createdTime": 1,
            }
        },
        {
            "add": {
                "path": "one.parquet", "partitionValues": {}, "size": (place / "one.parquet").stat().st_size,
                "modificationTime": 1, "dataChange": True, "stats": json.dumps({"numRecords": 2}),
            }
        },
    ]  # fmt: skip
    (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
