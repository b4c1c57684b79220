"""Tables as Delta's own reader shows them at one version, and what a feed's query makes of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from console.agent.resilience.failure import cause
from console.model.live import Feed, TableState
from console.model.schema import quoted


@dataclass(frozen=True, slots=True)
class Pinned:
    """One table as of one Delta version."""

    state: TableState
    path: str
    version: int

    def stored(self, session: Any) -> Any:
        """Its rows, but for one thing that Delta's own reader leaves as the log spells it: an empty text in a partition
        column is NULL by the protocol."""
        from pyspark.sql.functions import lit, nullif

        rows = session.read.format("delta").option("versionAsOf", self.version).load(self.path)
        by = DeltaTable(self.path, version=self.version).metadata().partition_columns
        texts = [field.name for field in rows.schema if field.name in by and field.dataType.typeName() == "string"]
        return rows.withColumns({name: nullif(rows[quoted(name)], lit("")) for name in texts}) if texts else rows

    def rows(self, session: Any) -> Any:
        """As the release shows them."""
        return shown(session, self.state, self.stored(session))


@dataclass(frozen=True, slots=True)
class PinnedSource:
    """What one feed reads: its driving table and those that it joins."""

    feed: Feed
    driving: Pinned
    joins: tuple[Pinned, ...] = ()

    def through(self, session: Any, stored: Any, sql: str) -> Any:
        """What a query over the feed's views makes of these stored rows of its driving table."""
        for joined in self.joins:
            joined.rows(session).createOrReplaceTempView(joined.state.table.name)
        shown(session, self.driving.state, stored).createOrReplaceTempView(self.driving.state.table.name)
        return session.sql(sql)


def shown(session: Any, state: TableState, stored: Any) -> Any:
    """Stored rows as the release shows them: renames, defaults, merged states."""
    stored.createOrReplaceTempView("stored")
    return session.sql(state.read)


def reason(error: Exception) -> str:
    """What kept Spark from reading, in one line without the value that it happened to.

    raises  the error itself where it is not about what was read: a lost JVM tells nothing of a table
    """
    if not type(error).__module__.startswith("pyspark") and type(error).__name__ != "Py4JJavaError":
        raise error
    return cause(error)


def first(words: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`"""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
