"""A project of one pipeline that replicates, as files; the command line run on it as an operator would."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.stores.forked import FORKER

REPLICATION = """\
source: {{url: "env:APP_URL"}}
stores:
  clickhouse:
    kind: clickhouse
    url: env:CLICKHOUSE_URL
    table: "siphon_{{table}}"
    extra: [_version, _deleted]
  lake:
    kind: iceberg
    table: "app.{{table}}"
    extra: [_version, _deleted]
    catalog: {{type: sql, uri: "sqlite:///{root}/lake/catalog.db?timeout=60", warehouse: "file://{root}/lake"}}
  raw:
    kind: delta
    root: "{root}/raw"
    extra: [_version, _deleted]
tables:
{tables}
"""


class Project:
    """Files below `root`, and the environment in which console is called."""

    def __init__(self, root: Path, clickhouse: str, postgres: str, tables: Sequence[str] = ("issues",)) -> None:
        self.root = root
        for folder in ("regions", "plans/app/migrations", "plans/app/tables", "lake", "raw", "warehouse", "crashes"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / "regions" / "eu.yaml").write_text("warehouse: warehouse\n")
        (root / "plans" / "app" / "pipeline.yaml").write_text("description: what the application writes\n")
        self.replicate(REPLICATION.format(root=root, tables="".join(f"  {table}:\n" for table in tables)))
        self.env = {
            **os.environ,
            "CLICKHOUSE_URL": clickhouse,
            "APP_URL": postgres,
            "CONSOLE_HOME": str(root / "home"),
            "CONSOLE_CRASH_DIR": str(root / "crashes"),
        }

    def replicate(self, yaml: str) -> None:
        (self.root / "plans" / "app" / "replication.yaml").write_text(yaml)

    def migrate(self, name: str, phase: str, operation: Mapping[str, Any], table: str = "issues") -> str:
        """Commit a migration; returns its id."""
        data = {"version": 1, "phase": phase, "schema": "public", "table": table, "operation": operation}
        (self.root / "plans" / "app" / "migrations" / f"{name}.json").write_text(json.dumps(data, indent=2))
        return name

    def console(self, *words: str) -> subprocess.CompletedProcess[str]:
        return FORKER.run([*words, "--project", str(self.root)], self.env)

    def apply(self, phase: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.console("schema", "apply", "--phase", phase, "--yes", *words)

    def arm(self, point: str) -> None:
        (self.root / "crashes" / point).touch()

    @property
    def armed(self) -> list[str]:
        return sorted(path.name for path in (self.root / "crashes").iterdir())


def kills(project: Project, phase: str, names: Sequence[str], *words: str) -> int:
    """Run one phase, killed once at each point that it comes by, until it comes to its end; returns how often.

    Before a statement it is announced and not done; after it, done and not written down; at last, nothing is left.
    """
    for name in names:
        for left in range(1, 30):
            project.arm(f"schema-before-{name}-{left}")
            project.arm(f"schema-after-{name}-{left}")
        project.arm(f"schema-applied-{name}")
    for times in range(120):
        done = project.apply(phase, *words)
        if done.returncode == 0:
            return times
        assert done.returncode == -9, done.stderr
    raise AssertionError("it never came to its end")


def add(name: str, kind: str, *, nullable: bool = True, default: str | None = None) -> dict[str, Any]:
    return {"type": "add_column", "name": name, "data_type": kind, "nullable": nullable, "default": default}


def drop(name: str) -> dict[str, Any]:
    return {"type": "drop_column", "name": name}


def swap(**columns: str) -> dict[str, Any]:
    return {"type": "swap_columns", "columns": columns}


def replace(name: str, source: str | None, **facets: Any) -> dict[str, Any]:
    return {"type": "replace_column", "name": name, "from": source, **facets}


def retype(name: str, was: str, to: str, classification: str) -> dict[str, Any]:
    return {
        "type": "change_column",
        "name": name,
        "data_type": to,
        "was": {"data_type": was},
        "classification": classification,
    }
