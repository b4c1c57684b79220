"""SQLMesh's backfill of one task, in its own Python: `python -m tests.bench.other_tools.run_sqlmesh FOLDER`."""

import importlib
import sys
from pathlib import Path

from tests.bench.other_tools import task, tool_session

CONFIG = """gateways:
  spark:
    connection: {type: spark, concurrent_tasks: 1}
    state_connection: {type: duckdb, database: STATE}
default_gateway: spark
model_defaults: {dialect: spark, start: BEGIN}
disable_anonymized_analytics: true
"""
FILTER = "raw.landing WHERE ts BETWEEN @start_ts AND @end_ts"


def model(wanted: task.BackfillTask) -> str:
    columns = ",\n    ".join(f"{name} {type}" for name, type in wanted.columns.items())
    size = f", batch_size {wanted.batch_days}" if wanted.batch_days else ""
    return f"""MODEL (
  name web.requests,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day{size}),
  start '{wanted.begin}',
  cron '@daily',
  partitioned_by (day),
  table_format delta,
  columns (
    {columns}
  )
);

{wanted.query_from(FILTER)}
"""


def main(folder: str) -> None:
    place = Path(folder)
    wanted = task.read(place)
    project = place / "project"
    (project / "models").mkdir(parents=True)
    (project / "config.yaml").write_text(
        CONFIG.replace("STATE", str(place / "state.db")).replace("BEGIN", wanted.begin)
    )
    (project / "models" / "requests.sql").write_text(model(wanted))
    session = tool_session.started(place, wanted)
    sqlmesh = importlib.import_module("sqlmesh")
    context = sqlmesh.Context(paths=[str(project)])
    context.plan(execution_time=wanted.after, no_prompts=True, auto_apply=True)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
