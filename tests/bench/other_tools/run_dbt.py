"""dbt's backfill of one task by microbatches, in its own Python: `python -m tests.bench.other_tools.run_dbt FOLDER`."""

import importlib
import json
import os
import sys
from pathlib import Path

from tests.bench.other_tools import task, tool_session

PROJECT = """name: web
version: '1.0.0'
profile: web
models: {web: {+file_format: delta}}
flags: {send_anonymous_usage_stats: false}
"""
PROFILE = "web: {target: spark, outputs: {spark: {type: spark, method: session, schema: web, host: NA, threads: 1}}}\n"
SOURCES = """sources:
  - name: raw
    schema: raw
    tables: [{name: landing, config: {event_time: ts}}]
"""


def model(wanted: task.BackfillTask) -> str:
    """The columns by name, the day last: Spark takes a dynamic partition from there."""
    names = ", ".join([*(name for name in wanted.columns if name != "day"), "day"])
    given = f"'{wanted.begin}'"
    return f"""{{{{ config(
  materialized='incremental', incremental_strategy='microbatch', event_time='ts', begin={given}, batch_size='day',
  lookback=0, partition_by=['day'], concurrent_batches=false
) }}}}
SELECT {names} FROM (
{wanted.query_from("{{ source('raw', 'landing') }}")}
)
"""


def main(folder: str) -> None:
    place = Path(folder)
    wanted = task.read(place)
    project = place / "project"
    (project / "models").mkdir(parents=True)
    files = {
        "dbt_project.yml": PROJECT, "profiles.yml": PROFILE, "models/sources.yml": SOURCES, "models/requests.sql": model(wanted)
    }  # fmt: skip
    for name, text in files.items():
        (project / name).write_text(text)
    os.chdir(project)
    session = tool_session.started(place, wanted)
    runner = importlib.import_module("dbt.cli.main").dbtRunner()
    done = runner.invoke(["run", "--event-time-start", wanted.begin, "--event-time-end", wanted.after])
    results = [(str(each.node.name), str(each.status), str(each.message)) for each in done.result or ()]
    session.stop()
    if not done.success:
        raise SystemExit(json.dumps({"exception": repr(done.exception), "results": results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
