"""The fleet's pipeline of 500 tables as files of a project, and a region that has it live."""

from pathlib import Path

import pyarrow as pa
import yaml
from deltalake import DeltaTable

from console import planning, project
from console.agent.store.ledger import Releases
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import numbered
from console.model.schema import Table

KINDS = {
    "string": pa.string(), "timestamp": pa.timestamp("us", "UTC"), "date": pa.date32(), "bigint": pa.int64(), "int": pa.int32(),
    "double": pa.float64(), "boolean": pa.bool_(),
}  # fmt: skip
REGION = "name: eu\nwarehouse: w\nlimits: {rows: 5_000_000}\n"


def write_files(root: Path, pipeline: Pipeline) -> None:
    """The pipeline's files; those that were there stay as far as they are the same."""
    texts = {"regions/eu.yaml": REGION, "plans/web/pipeline.yaml": "description: large\n"}
    texts |= {f"plans/web/tables/{table.name}.yaml": _table(table) for table in pipeline.tables}
    for query in pipeline.materializations:
        texts[f"plans/web/materializations/{query.name}.sql"] = f"/*\ninto: {query.into}\n*/\n{query.sql}\n"
    texts |= {f"plans/web/endpoints/{endpoint.name}.sql": endpoint.sql + "\n" for endpoint in pipeline.endpoints}
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _table(table: Table) -> str:
    entries = {
        "kind": table.kind,
        "columns": {column.name: column.type for column in table.columns},
        "time": table.time,
        "partition_by": list(table.partition_by),
        "managed": table.managed,
        "retention": f"{table.retention_days}d" if table.retention_days else "",
        "description": table.description,
    }
    return str(yaml.safe_dump({key: value for key, value in entries.items() if value}, sort_keys=False))


def deploy(root: Path) -> Path:
    """The files' pipeline live in the region, its tables without rows; returns the warehouse."""
    loaded = project.load(root)
    region = loaded.region("eu")
    bare = Live(region="eu", pipeline="web", release=None)
    release = numbered(planning.plan(loaded.pipeline("web", region), bare, region, "bench"), 1).release
    warehouse = root / "w"
    for table in release.tables:
        version = table.version
        schema = pa.schema([(column.name, KINDS[column.type]) for column in version.columns])
        settings = dict(version.settings or ())
        DeltaTable.create(
            str(warehouse / version.path),
            schema=schema,
            partition_by=list(version.partition_by) or None,
            configuration=settings or None,
        )
    releases = Releases(warehouse, "web")
    releases.propose(release, "web-1", "ada", "ops")
    releases.swap("", release.id, "ada", "ops")
    return warehouse
