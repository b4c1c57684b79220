"""Places in which the pages' commands run: the demo's canary with less traffic, and the README's own warehouse."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pyarrow as pa
from deltalake import write_deltalake

from tests.life.region import SHORT_LIVED
from tests.pages.blocks import ROOT, table

# The program as installed; only what the demo makes up is a hundredth of it.
PROGRAM = """#!{python}
import sys
sys.path.insert(0, {root!r})
if sys.argv[1:2] == ["demo"]:
    from dataclasses import replace
    from console.demo.traffic import generate
    generate.TRAFFIC["us"] = replace(generate.TRAFFIC["us"], rows_a_day=300, heavy=400)
from console.main import main
main()
"""
EDITOR = """#!/bin/sh
echo '-- looked at' >> "$1"
"""


def environment(folder: Path) -> dict[str, str]:
    """Of a person with an editor, a home of their own, and `console` on the PATH."""
    bin = folder / ".venv" / "bin"
    bin.mkdir(parents=True, exist_ok=True)
    python = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    program = PROGRAM.format(python=sys.executable, root=str(ROOT))
    for name, text in (("console", program), ("editor", EDITOR), ("python", python)):
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONSOLE_", "NO_COLOR"))}
    return {
        **kept,
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "EDITOR": str(bin / "editor"),
        "CONSOLE_HOME": str(folder / "home"),
        "PYTHONUTF8": "1",
    }


def short_lived(inventory: Path) -> None:
    """The region's JVM compiles for minutes, not for years, and no Java is written for a query: the installed console (`tests/installed`)
    and the demo's canary do that."""
    conf = json.dumps(SHORT_LIVED)
    text, found = re.subn(r"(?m)^(spark: \{.+)\}$", lambda line: f"{line[1]}, conf: {conf}}}", inventory.read_text())
    assert found == 1, f"{inventory.name} has no `spark: {{…}}`"
    inventory.write_text(text)


def demo(folder: Path) -> None:
    """The repository with one region, the canary, as a person has cloned it."""
    shutil.copytree(ROOT / "plans", folder / "plans", ignore=shutil.ignore_patterns("saved"))
    (folder / "regions").mkdir()
    for name in ("_defaults.yaml", "us.yaml"):
        shutil.copy(ROOT / "regions" / name, folder / "regions")
    (folder / ".gitignore").write_text(".console/\n.venv/\nhome/\n*.json\n")
    commit(folder, "-c", "init.defaultBranch=main", "init", "-q")
    commit(folder, "add", "-A")
    commit(folder, "commit", "-q", "-m", "as cloned")
    commit(folder, "update-ref", "refs/remotes/origin/main", "HEAD")


def commit(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.net")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


MIGRATION = "ALTER TABLE issues ADD COLUMN title text;\nALTER TABLE issues DROP COLUMN legacy;\n"


def replicated(folder: Path, dsn: str) -> None:
    """An application's table in PostgreSQL, its copy in a Delta store, and the migration that the application comes with."""
    for name, text in {
        "regions/eu.yaml": "warehouse: lake\n",
        "plans/app/pipeline.yaml": "description: what the application writes\n",
        "plans/app/replication.yaml": (
            'source: {url: "env:DATABASE_URL"}\nstores:\n  raw: {kind: delta, root: "{warehouse}/raw"}\ntables:\n  issues:\n'
        ),
        "db/migrate/20260102_add_title.sql": MIGRATION,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE issues (id bigint PRIMARY KEY, legacy text)")
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "legacy": ["a", None]})
    write_deltalake(str(folder / "lake" / "raw" / "issues"), rows)


def application_migrates(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MIGRATION)


def own_warehouse(folder: Path) -> Mapping[str, str]:
    """The files that the README shows, with their warehouse in this folder, and a landing table that somebody writes."""
    lake = folder / "lake" / "eu"
    files = table("README.md", "regions/eu.yaml")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("/srv/lake/eu", str(lake)))
    short_lived(folder / "regions" / "eu.yaml")
    start = datetime.now(UTC) - timedelta(hours=30)
    rows = 400
    landing = pa.table(
        {
            "id": [f"e{n}" for n in range(rows)],
            "ts": pa.array([start + timedelta(minutes=4 * n) for n in range(rows)], pa.timestamp("us", "UTC")),
            "payload": [f'{{"status": {200 + n % 5}}}' for n in range(rows)],
        }
    )
    write_deltalake(str(lake / "landing"), landing)
    return files
