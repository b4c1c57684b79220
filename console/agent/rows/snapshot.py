"""A whole table as of one version, through Delta's own reader."""

from functools import lru_cache
from typing import Any

from console.agent.store.shape import layout_of
from console.model.schema import quoted


def stored_at(session: Any, path: str, version: int) -> Any:
    """Its stored rows. An empty text in a partition column is NULL, as the Delta protocol says and other readers have it;
    Delta's own reader leaves it what the log spells.
    """
    rows = session.read.format("delta").option("versionAsOf", version).load(path)
    return blank_is_null(rows, _texts(path, version))


@lru_cache(maxsize=256)
def _texts(path: str, version: int) -> tuple[str, ...]:
    """For a joined table, which has the same version at most steps: opening one costs as much as it has files."""
    return layout_of(path, version).texts


def blank_is_null(rows: Any, texts: tuple[str, ...]) -> Any:
    from pyspark.sql.functions import col, lit, nullif

    return rows.withColumns({name: nullif(col(quoted(name)), lit("")) for name in texts}) if texts else rows
