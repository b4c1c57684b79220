"""Two queries, old and new, or None where the dice make none."""

from tests.planning.property.model import Query

Pair = tuple[Query, Query] | None
