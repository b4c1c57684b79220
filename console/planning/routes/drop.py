"""A live table that is no longer declared."""

from console.model.live import TableState
from console.planning.routes.verdict import Verdict


def verdict(live: TableState) -> Verdict:
    why = "no longer declared; its files stay until cleanup"
    if live.table.kind == "landing":
        why = "no longer declared; its files stay, they are not ours"
    return Verdict(name=live.table.name, action="drop", why=why, live=live)
