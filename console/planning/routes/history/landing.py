"""`history: from now` of a landing table, which has no query that only later rows could follow."""

from console.planning.landing.forward_query import continued
from console.planning.routes.change import Change
from console.planning.routes.history.carried import without
from console.planning.routes.reasons import listed
from console.planning.routes.verdict import Impossible
from console.remedy import Edit

_AT_READ = "compute them by try_cast, CASE or coalesce: then every row shows a value, computed at read, and none moves"


def landing_from_now(change: Change) -> Impossible:
    """Why a new version of a landing table needs every row copied, and the change that would move none."""
    drop = without(change, "every row is copied to the new version")
    if change.conversion is None:
        why = "a Delta table has one partitioning, so rows that do not move keep the existing one"
        return Impossible(why, (drop,))
    stored = listed(list(continued(change.wanted.table, change.live).converted))
    why = f"rows that stay as they were sent have no value of {stored}, and its forward_query may fail for some of them"
    return Impossible(why, (drop, Edit(node=change.name, how=_AT_READ)))
