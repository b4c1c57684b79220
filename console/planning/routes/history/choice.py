"""The choice for a table's history, applied to its cheapest exact route: taken, refused with a remedy, or without effect."""

from dataclasses import replace
from typing import assert_never

from console.errors import Problem
from console.model.schema import Carry, FromNow, HistoryChoice, Since, Table, history_word
from console.model.slices import EARLY, LATE
from console.planning.loss.expired_days import expired_days
from console.planning.routes.change import Change
from console.planning.routes.forward import is_given
from console.planning.routes.history.carried import carried_rows, carry, without
from console.planning.routes.history.cut import since
from console.planning.routes.history.landing import landing_from_now
from console.planning.routes.history.linked import from_now
from console.planning.routes.reasons import listed
from console.planning.routes.verdict import Alternative, Impossible, Verdict
from console.remedy import AnotherColumn, DropKey, Edit, Flag, Remedy, SetKey

WEEK = 7  # days of the example of `since`
_GIVEN = "its forward_query computes every row that it holds"
_EXACT = "every wanted value is known exactly from its stored rows"
_STAYS = "no row of it has to be computed again"
_OLDER = "it holds no row of an older day"


def applied(change: Change, cheapest: Verdict) -> Verdict:
    """The verdict by the operator's choice, else by the cheapest exact route.

    cheapest  verdict for `history: all`
    """
    return replace(_chosen(change, cheapest), alternatives=_alternatives(change, cheapest))


def _chosen(change: Change, cheapest: Verdict) -> Verdict:
    choice = change.choice
    if choice is None:
        return _with_alternative(change, cheapest)
    if why := _no_effect(change, cheapest, choice):
        problems = _without_way_back(change, choice, cheapest.problems)
        return replace(cheapest, problems=(*problems, unused(change.wanted.table, choice, why, change)))
    made = _made(change, choice)
    if isinstance(made, Impossible):
        refused = _refusal(change, choice, made)
        return replace(_with_alternative(change, cheapest), problems=(*cheapest.problems, refused))
    repeated = (_repeated(change, choice),) if _is_repeated(change, choice) else ()
    return replace(made, problems=(*made.problems, *repeated))


def _without_way_back(change: Change, choice: HistoryChoice, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Without the remedy to drop a stale forward query, if the operator's choice would not be possible without that query."""
    if not is_given(change) or not isinstance(_made(change, choice), Impossible):
        return problems
    drop = DropKey(node=change.name, key="forward_query")
    return tuple(
        replace(p, hint="", remedies=tuple(r for r in p.remedies if r != drop)) if drop in p.remedies[1:] else p
        for p in problems
    )


def _made(change: Change, choice: HistoryChoice) -> Verdict | Impossible:
    made = _by_kind(change, choice)
    if isinstance(made, Verdict):
        return made
    remedies = tuple(remedy for remedy in made.remedies if _is_helpful(change, remedy))
    plain = replace(choice, older="")
    if choice.older and isinstance(_by_kind(change, plain), Verdict) and not _is_too_little(change):
        remedies = (*remedies, SetKey(node=change.name, key="history", value=str(plain)))
    return replace(made, remedies=remedies)


def _is_too_little(change: Change) -> bool:
    """Whether a downstream table keeps days of which this one has lost rows: it would be refused unless this one is recomputed."""
    own = change.region.table(change.name)
    below = [t.table.name for t in change.desired.tables.values() if any(f.source == change.name for f in t.feeds)]
    known = [stats for name in below if (stats := change.region.table(name)) is not None and stats.rows]
    return own is not None and any(not own.rows or expired_days(stats, own, (), change.cache) for stats in known)


def _is_helpful(change: Change, remedy: Remedy) -> bool:
    """Whether a remedy would not be refused as well."""
    match remedy:
        case SetKey(key="history", value=value):
            other = history_word(value)
            return other is None or isinstance(_by_kind(change, other), Verdict)
        case _:
            return True


def _by_kind(change: Change, choice: HistoryChoice) -> Verdict | Impossible:
    match choice:
        case Carry(older):
            return carry(change, older)
        case Since(day, older):
            return since(change, day, older)
        case FromNow(older):
            return landing_from_now(change) if change.is_landing else from_now(change, older)
        case _:
            assert_never(choice)


def _alternatives(change: Change, cheapest: Verdict) -> tuple[Alternative, ...]:
    """All choices for comparison; () if no row has to move, or all of them have the same result."""
    if not cheapest.rebuilt:
        return ()
    possible = [Alternative("all", cheapest)]
    if change.is_landing:
        return (*possible, Alternative(str(FromNow()), landing_from_now(change)))
    chosen = change.choice
    copied = chosen if isinstance(chosen, Carry) else Carry()
    taken_over = chosen if isinstance(chosen, FromNow) else FromNow()
    choices: tuple[HistoryChoice, ...] = (*_since(change), copied, taken_over)
    for choice in choices:
        why = _no_effect(change, cheapest, choice)
        possible.append(Alternative(str(choice), Impossible(why) if why else _made(change, choice)))
    changes = cheapest.recomputed is not None or any(isinstance(each.made, Verdict) for each in possible[1:])
    return tuple(possible) if changes else ()


def _since(change: Change) -> tuple[Since, ...]:
    """The day that the operator named, else an example: the last week, or as much of it as the source still holds."""
    if isinstance(change.choice, Since):
        return (change.choice,)
    stats = change.region.table(change.name)
    days = (
        sorted(day.day for day in stats.days if day.day and day.rows and day.day not in (EARLY, LATE)) if stats else []
    )
    if not days:
        return ()
    example = days[max(1, len(days) - WEEK)] if len(days) > 1 else days[0]
    made = since(change, example)
    return (Since(made.first if isinstance(made, Impossible) and made.first else example),)


def _refusal(change: Change, choice: HistoryChoice, made: Impossible) -> Problem:
    """C140: the choice is not possible; the remedies name the possible ones."""
    message = f"history of {change.name} ({choice}) is not possible: {made.why}"
    edits = all(isinstance(one, Edit | AnotherColumn) for one in made.remedies)
    remedies = (*made.remedies, without(change)) if edits else made.remedies
    where = change.wanted.table.where
    return Problem(code="C140", message=message, where=where, node=change.name, remedies=remedies)


def unused(table: Table, choice: HistoryChoice, why: str, change: Change | None = None) -> Problem:
    """C109 if the choice is left over from the live release, else C141."""
    if change is not None and _is_repeated(change, choice):
        message = f"history of {table.name} ({choice}) is left over from the release that is live: {why}"
        return _warning(table, "C109", message, DropKey(node=table.name, key="history"))
    message = f"history of {table.name} ({choice}) has no effect: {why}"
    return _warning(table, "C141", message, DropKey(node=table.name, key="history"))


def _warning(table: Table, code: str, message: str, *remedies: Remedy) -> Problem:
    return Problem(code=code, message=message, where=table.where, severity="warn", node=table.name, remedies=remedies)


def _with_alternative(change: Change, cheapest: Verdict) -> Verdict:
    """The verdict, with the alternatives to a replay noted for the remedies of a loss."""
    if cheapest.recomputed is None or not cheapest.rebuilt:
        return cheapest
    possible = not isinstance(carried_rows(change), Impossible)
    anew = (_computed_anew(change, possible=possible),) if change.live.carried and cheapest.copied is None else ()
    given = change.diff.rows and change.wanted.table.kind == "append" and not change.rebuilt_sources
    return replace(cheapest, may_be_carried=possible, may_be_given=given, problems=(*cheapest.problems, *anew))


def _computed_anew(change: Change, *, possible: bool) -> Problem:
    """C118: rows that an earlier choice carried are recomputed after all."""
    columns = listed(change.live.carried)
    message = (
        f"{change.name}: older rows of {columns} were carried, or computed from carried rows, and are recomputed now"
    )
    keeps = SetKey(node=change.name, key="history", value="carry", effect="keeps them as they are")
    return _warning(change.wanted.table, "C118", message, *([keeps] if possible else []))


def _no_effect(change: Change, cheapest: Verdict, choice: HistoryChoice) -> str:
    """Why a choice has no effect here; "" if it has one."""
    if not cheapest.rebuilt and not cheapest.picks:
        return _STAYS
    if change.is_landing and isinstance(choice, FromNow):
        return ""
    if is_given(change) and cheapest.recomputed is None:
        return _GIVEN
    named = choice.older in ("default", "null")  # values that differ from the exact ones
    if isinstance(choice, FromNow):
        return "" if cheapest.rebuilt or named else _STAYS
    recomputed = cheapest.recomputed is not None
    if not recomputed and not named and not _keeps_older(change, choice):
        return _EXACT
    if isinstance(choice, Since) and (recomputed or not change.diff.rows) and not change.rebuilt_sources:
        stats = change.region.table(change.name)
        if stats is None or not any(day.day < choice.day and day.rows for day in stats.days):
            return _OLDER
    return ""


def _keeps_older(change: Change, choice: HistoryChoice) -> bool:
    """Whether older rows would differ from a copy by the new query: rows that it filters, or values computed as before."""
    if change.wanted.table.kind != "append":
        return False
    changed = any(why.kind == "expression" for why in change.diff.computed.values())
    return not change.diff.rows or (changed and isinstance(choice, Carry))


def _is_repeated(change: Change, choice: HistoryChoice) -> bool:
    return not change.chosen_now and str(choice) == change.live.table.history


def _repeated(change: Change, choice: HistoryChoice) -> Problem:
    name = change.name
    message = f"history of {name} ({choice}) also made the live release: it applies to this change as well"
    drop = DropKey(node=name, key="history")
    again = Flag(flag=f"--history {name}=all", effect="if it was meant only for the previous change")
    return _warning(change.wanted.table, "C109", message, drop, again)
