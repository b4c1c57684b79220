"""`history: since D`: rows of days before D are carried, the others are computed from the source: a hybrid by the
operator's choice."""

from console.model.schema import OlderValues, Since
from console.model.slices import day_after
from console.planning.loss.expired_days import expired_days, first_day
from console.planning.routes.change import Change
from console.planning.routes.history.carried import carried_rows, carry, shown, without
from console.planning.routes.hybrid import cut_differs
from console.planning.routes.reasons import last_day
from console.planning.routes.verdict import Impossible, LiveCopy, Recomputation, Verdict
from console.remedy import Remedy, SetKey


def since(change: Change, day: str, older: OlderValues = "") -> Verdict | Impossible:
    """A hybrid verdict. Both halves end at one position: the source is read as of the position that the live version
    had reached."""
    if problem := _not_exact(change, day):
        return problem
    made = carried_rows(change, older)
    if isinstance(made, Impossible):
        return made
    shows = f"before {day} as carried ({made.older.shown}), from then on as computed"
    return Verdict(
        name=change.name, action="hybrid", why=f"history: {Since(day, older)}, by the operator's choice: {shows}", wanted=change.wanted,
        live=change.live, diff=change.diff, columns=change.diff.columns,
        copied=LiveCopy(made.copied.sql, until=day), recomputed=Recomputation(since=day),
        history=str(Since(day, older)), older_rows=shows, older_until=last_day(change), carried=made.older.columns,
        problems=(shown(change, f"rows of days before {day}, and rows without a time,", made.older),),
    )  # fmt: skip


def _not_exact(change: Change, day: str) -> Impossible | None:
    """Why rows would be lost or duplicated at the cut, with a remedy."""
    instead: Remedy = SetKey(node=change.name, key="history", value="carry", effect="copies all rows so far")
    if isinstance(carry(change), Impossible):
        instead = without(change)
    source = change.desired.tables.get(change.wanted.feeds[0].source) if change.wanted.feeds else None
    if why := cut_differs(change.wanted, change.live, source, joined=True):
        return Impossible(why, (instead,))
    assert source is not None
    name = source.table.name
    table, have = change.region.table(change.name), change.region.table(name)
    if table is None or have is None or not have.rows:
        return Impossible(f"{name} holds no row that could be read again", (instead,))
    live_feeds = change.release.feeds_into(change.name)
    state = change.release.table(name)
    forgets = source.table.retention_days is not None or (state is not None and state.table.retention_days is not None)
    if forgets and not all(each.exact for each in (*table.days, *have.days)):
        return Impossible(f"{name} forgets rows, and which days it still has in full cannot be determined", (instead,))
    gone = [each for each in expired_days(table, have, live_feeds, change.cache) if each >= day]
    oldest = max([*gone, first_day(have.days)])
    if oldest < day:
        return None
    later = day_after(oldest)
    possible = later and not isinstance(carried_rows(change), Impossible)
    remedy = SetKey(node=change.name, key="history", value=f"since {later}") if possible else instead
    return Impossible(f"{name} may no longer hold every row of {oldest}", (remedy,), later)
