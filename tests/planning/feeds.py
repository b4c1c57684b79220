"""One materialization through the two stages that look at its query."""

from console.model.schema import Table
from console.planning.sql import feed
from console.planning.sql.compile import NameScope
from console.planning.sql.feed import FeedCode
from console.planning.sql.tree import Text


def feed_code(sql: str, table: Table, known: NameScope) -> tuple[FeedCode | None, Text]:
    """What its query compiles to, and the text with its problems."""
    text = Text(sql=sql, node="m")
    resolved = feed.resolve(text, table, known, {})
    return (feed.evaluate(resolved, text, table, known) if resolved is not None else None), text
