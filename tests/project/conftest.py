"""A small project on disk, to be spoiled one file at a time."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Write = Callable[[Mapping[str, str | None]], Path]

FILES: dict[str, str] = {
    "regions/_defaults.yaml": "owner: data\nlimits: {rows: 5_000_000, bytes: 20 GiB}\nspark: {conf: {spark.a: 0123}}\n",
    "regions/eu.yaml": "warehouse: lake/eu\nwave: 2\n",
    "regions/us.yaml": "warehouse: s3://acme-us/web/\ncanary: true\nlimits: {rows: 1_000}\n",
    "plans/web/pipeline.yaml": "description: requests\nvariables: {bots: 'no', days: 07}\n",
    "plans/web/tables/landing.yaml": (
        "kind: landing\nmanaged: true\nretention: 30d\n"
        "columns:\n  id: string\n  ts: timestamp\n  payload: string\n  old: int\n"
    ),
    "plans/web/tables/requests.yaml": (
        "partition_by: day\n"
        "columns:\n  event_id: {type: STRING, nullable: false}\n  day: date\n  ts: Timestamp\n"
        "  status: {type: integer, default: 200}\n"
    ),
    "plans/web/materializations/parse.sql": "/* into: requests */\n\n  SELECT id AS event_id FROM landing\n",
    "plans/web/endpoints/top.sql": (
        "/*\nparameters: {day: date, limit: {type: int, default: 10}}\nowner: web\n*/\nSELECT * FROM requests\n"
    ),
    "plans/web/endpoints/top.calls.yaml": "calls:\n  - parameters: {day: 2026-11-01}\n",
    "plans/web/copies/daily.sql": "/* into: by_day */ SELECT day FROM requests",
    "plans/web/sinks/export.sql": "/*\npath: exports/requests\nformat: csv\n*/\nSELECT * FROM requests",
    "plans/web/tests/one.yaml": "not: ours\n",
    "plans/web/README.md": "# web\n",
    "plans/saved/abc.json": "{}",
}


@pytest.fixture
def project(tmp_path: Path) -> Write:
    """Writes the project with some files replaced, or left out where they are None; returns its root."""

    def write(changed: Mapping[str, str | None]) -> Path:
        for name, text in {**FILES, **changed}.items():
            if text is not None:
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return tmp_path

    return write
