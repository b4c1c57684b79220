"""A whole table as of one version, through Delta's own reader."""

from functools import lru_cache
from typing import Any

from console.agent.store.shape import layout_of
from console.model.schema import quoted


def stored_at(session: Any, path: str, version: int) -> Any:
    """The stored rows of a version. An empty text in a partition column is NULL by the Delta protocol; Delta's own
    reader returns it unchanged from the log.
    """
    rows = session.read.format("delta").option("versionAsOf", version).load(path)
    return blank_is_null(rows, _text_partitions(path, version))


@lru_cache(maxsize=256)
def _text_partitions(path: str, version: int) -> tuple[str, ...]:
    """Cached for joined tables, which keep their version over many steps; opening a table costs time for every file."""
    return layout_of(path, version).texts


def blank_is_null(rows: Any, texts: tuple[str, ...]) -> Any:
    from pyspark.sql.functions import col, lit, nullif

    return rows.withColumns({name: nullif(col(quoted(name)), lit("")) for name in texts}) if texts else rows
