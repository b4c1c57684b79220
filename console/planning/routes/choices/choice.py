"""The choice for a table's history, applied to its cheapest exact route: taken, refused with a remedy, or without effect."""

from dataclasses import replace
from typing import assert_never

from console.errors import Problem
from console.model.schema import Carry, Since, Table
from console.planning.cache.planner_cache import Memo
from console.planning.cache.releases import shared_release
from console.planning.routes.change import Change
from console.planning.routes.choices.carried import carried_rows, carry
from console.planning.routes.choices.cut import since
from console.planning.routes.forward import is_given
from console.planning.routes.reasons import listed
from console.planning.routes.verdict import Verdict

_CARRIED = Memo[bool]()  # whether carrying is possible, alike in all regions of a release
_GIVEN = "its forward_query computes every row that it holds"
_EXACT = "all that is wanted of its rows is known exactly from what it holds"
_STAYS = "no row of it has to be computed again"
_OLDER = "it holds no row of an older day"


def applied(change: Change, cheapest: Verdict) -> Verdict:
    """What becomes of a table by the operator's choice, else by its cheapest exact route.

    cheapest  verdict for `history: all`
    """
    choice = change.choice
    if choice is None:
        return _with_alternative(change, cheapest)
    if why := _no_effect(change, cheapest, choice):
        return replace(cheapest, problems=(*cheapest.problems, unused(change.wanted.table, choice, why, change)))
    match choice:
        case Carry():
            made = carry(change)
        case Since(day):
            made = since(change, day)
        case _:
            assert_never(choice)
    if isinstance(made, Problem):
        return replace(_with_alternative(change, cheapest), problems=(*cheapest.problems, made))
    repeated = (_repeated(change, choice),) if _is_repeated(change, choice) else ()
    return replace(made, problems=(*made.problems, *repeated))


def unused(table: Table, choice: Carry | Since, why: str, change: Change | None = None) -> Problem:
    """C109 where it is left over from the release that is live, else C141."""
    if change is not None and _is_repeated(change, choice):
        message = f"history of {table.name} ({choice}) is left over from the release that is live: {why}"
        return Problem(
            code="C109", message=message, where=table.where, hint="drop it", severity="warn", node=table.name
        )
    message = f"history of {table.name} ({choice}) has no effect: {why}"
    return Problem(code="C141", message=message, where=table.where, hint="drop it", severity="warn", node=table.name)


def _with_alternative(change: Change, cheapest: Verdict) -> Verdict:
    """The same; a replay of what could be carried is told apart, for the remedy of a loss."""
    if cheapest.recomputed is None or not cheapest.rebuilt:
        return cheapest
    possible = not change.rebuilt_sources and change.cache.by_identity(
        _CARRIED,
        lambda: not isinstance(carried_rows(change), Problem),
        change.wanted,
        shared_release(change.release, change.cache),
    )
    anew = (_computed_anew(change, possible=possible),) if change.live.carried and cheapest.copied is None else ()
    return replace(cheapest, may_be_carried=possible, problems=(*cheapest.problems, *anew))


def _computed_anew(change: Change, *, possible: bool) -> Problem:
    """C118: what an earlier choice carried gets the values of the query after all."""
    columns = listed(change.live.carried)
    message = f"{change.name}: older rows of {columns} were carried, or computed from such, and are computed anew now"
    hint = "`history: carry` keeps them as they are" if possible else ""
    table = change.wanted.table
    return Problem(code="C118", message=message, where=table.where, hint=hint, severity="warn", node=table.name)


def _no_effect(change: Change, cheapest: Verdict, choice: Carry | Since) -> str:
    """Why a choice changes nothing here; "" where it does."""
    if not cheapest.rebuilt and not cheapest.picks:
        return _STAYS
    if is_given(change) and cheapest.recomputed is None:
        return _GIVEN
    recomputed = cheapest.recomputed is not None
    if not recomputed and not _keeps_older(change, choice):
        return _EXACT
    if isinstance(choice, Since) and (recomputed or not change.diff.rows) and not change.rebuilt_sources:
        stats = change.region.table(change.name)
        if stats is None or not any(day.day < choice.day and day.rows for day in stats.days):
            return _OLDER
    return ""


def _keeps_older(change: Change, choice: Carry | Since) -> bool:
    """Whether older rows stay other than a copy by the new query makes them: filtered rows, or values computed as before."""
    if change.wanted.table.kind != "append":
        return False
    changed = any(why.kind == "expression" for why in change.diff.computed.values())
    return not change.diff.rows or (changed and choice == Carry())


def _is_repeated(change: Change, choice: Carry | Since) -> bool:
    return not change.chosen_now and str(choice) == change.live.table.history


def _repeated(change: Change, choice: Carry | Since) -> Problem:
    name = change.name
    message = f"history of {name} ({choice}) also made the release that is live: it is taken for this change as well"
    hint = f"drop it, or `--history {name}=all`, if it was only meant for the change before"
    return Problem(code="C109", message=message, where=change.wanted.table.where, hint=hint, severity="warn", node=name)
