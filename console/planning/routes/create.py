"""A table that is not live yet: adopted in place, or computed from its sources."""

from console.model.live import Live
from console.planning.fingerprint import DesiredTable
from console.planning.routes.reasons import listed
from console.planning.routes.verdict import Recomputation, Verdict


def verdict(wanted: DesiredTable, region: Live) -> Verdict:
    name = wanted.table.name
    if wanted.table.kind != "landing":
        sources = listed(sorted({feed.source for feed in wanted.feeds}))
        why = f"new: its history is computed from {sources}"
        if wanted.table.source:
            why = f"new: an adapter in front of {sources}, whose rows are copied into it"
        return Verdict(name=name, action="create", why=why, wanted=wanted, recomputed=Recomputation())
    stats = region.table(name)
    why = f"new; adopted in place, {stats.rows:,} rows" if stats else "new; managed, so an empty one is made"
    return Verdict(name=name, action="create", why=why, wanted=wanted)
