"""Drift: whether the source of a backfill still has the planned columns."""

import json

from console.agent.feeds.backfill import History
from console.agent.store import open_tables
from console.agent.store.table_stats import simple_type
from console.errors import RegionError


def check(history: History) -> None:
    """Check that the source still has the columns that the step reads, with the types they had at the fence.

    History is read as of the fence and would not fail; the live rows after it would.

    raises  RegionError E_DRIFT naming the columns that changed
    """
    was, now = _columns(history.source_path, history.fence), _columns(history.source_path)
    needed = {place.lower() for name in history.step.columns for place in history.source.stored_in(name)}
    changed = [
        f"{name} was {kind}, {f'is {now[name]}' if name in now else 'is gone'}"
        for name, kind in was.items()
        if now.get(name) != kind and (not needed or name.lower() in needed)
    ]
    if changed:
        raise RegionError(
            f"{history.step.source} has changed since its fence at version {history.fence}: {'; '.join(changed[:5])}",
            hint="console discard, then console plan for the table as it is now",
            code="E_DRIFT",
        )


def _columns(path: str, version: int | None = None) -> dict[str, str]:
    return {
        field["name"]: simple_type(field["type"])
        for field in json.loads(open_tables.schema_json(path, version))["fields"]
    }
