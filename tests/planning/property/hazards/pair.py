"""Two queries, old and new, or None if the draw yields none."""

from tests.planning.property.model import Query

Pair = tuple[Query, Query] | None
