"""Tables pinned at one version, read by Delta's own reader, and a feed's query over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from console.agent.failure import cause, from_spark
from console.agent.query_over import query_over
from console.agent.store.added_columns import with_added
from console.model.live import Feed, TableState
from console.model.schema import quoted


@dataclass(frozen=True, slots=True)
class Pinned:
    """One table as of one Delta version."""

    state: TableState
    path: str
    version: int

    def stored(self, session: Any) -> Any:
        """Its stored rows. An empty text in a partition column is NULL by the protocol; Delta's own reader returns it as is."""
        from pyspark.sql.functions import lit, nullif

        rows = session.read.format("delta").option("versionAsOf", self.version).load(self.path)
        by = DeltaTable(self.path, version=self.version).metadata().partition_columns
        texts = [field.name for field in rows.schema if field.name in by and field.dataType.typeName() == "string"]
        return rows.withColumns({name: nullif(rows[quoted(name)], lit("")) for name in texts}) if texts else rows

    def rows(self, session: Any) -> Any:
        """Its rows as the release presents them."""
        return shown(session, self.state, self.stored(session))


@dataclass(frozen=True, slots=True)
class PinnedSource:
    """The tables read by one feed: its driving table and the joined ones."""

    feed: Feed
    driving: Pinned
    joins: tuple[Pinned, ...] = ()

    def run_query(self, session: Any, stored: Any, sql: str) -> Any:
        """A query over the feed's tables, with these stored rows of the driving table."""
        frames = {joined.state.table.name: joined.rows(session) for joined in self.joins}
        frames[self.driving.state.table.name] = shown(session, self.driving.state, stored)
        return query_over(session, sql, frames)


def shown(session: Any, state: TableState, stored: Any) -> Any:
    """Stored rows as the release presents them: columns renamed, defaults filled in, partial states merged."""
    return query_over(session, state.read, {"stored": with_added(state, stored)})


def reason(error: Exception) -> str:
    """Why Spark could not read, in one line without values.

    raises  the error itself if it is not Spark's about the read: a lost JVM implies nothing about a table
    """
    if not from_spark(error):
        raise error
    return cause(error)


def first(words: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`"""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
