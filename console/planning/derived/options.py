"""The choices for a table's history, side by side: the price of each, and what older rows show."""

from collections import ChainMap
from collections.abc import Collection, Iterable
from dataclasses import replace

from console.errors import Problem
from console.model.live import Live
from console.model.plan import HistoryOption, NodeChange
from console.model.region import Limits
from console.planning import rules
from console.planning.cache.planner_cache import PlannerCache
from console.planning.derived.prices import price
from console.planning.fingerprint import Desired
from console.planning.loss.allowed import accepted
from console.planning.routes.verdict import Alternative, Impossible, Verdict, Verdicts
from console.remedy import DropKey, Flag, Remedy, SetKey

_ANEW = "every row as if the new query had always run"
_COPIED = "every row as the new query gives it, computed from what the table keeps"


def options(
    verdict: Verdict, desired: Desired, verdicts: Verdicts, live: Live, limits: Limits,
    *, cache: PlannerCache, allowed: Collection[str],
) -> tuple[HistoryOption, ...]:  # fmt: skip
    """Each alternative for a table with its price; one with which the plan would be refused has the reason instead."""
    if not verdict.alternatives:
        return ()
    taken = verdict.history or "all"
    made: list[HistoryOption] = []
    for alternative in verdict.alternatives:
        word, chosen = alternative.history, alternative.history == taken
        if isinstance(alternative.made, Impossible):
            made.append(HistoryOption(history=word, chosen=False, older_rows="", impossible=alternative.made.why))
            continue
        shown = _shown(alternative.made)
        if why := _refused(alternative, desired, verdicts, live, cache=cache, allowed=allowed):
            made.append(HistoryOption(history=word, chosen=chosen, older_rows=shown, impossible=why))
            continue
        cost = price(alternative.made, verdicts, live, limits, cache)
        made.append(HistoryOption(history=word, chosen=chosen, older_rows=shown, price=cost))
    return tuple(made)


def followable(problems: Iterable[Problem], changes: Iterable[NodeChange]) -> tuple[Problem, ...]:
    """The problems of tables whose history was chosen, without remedies that would be refused: where not every row can be computed
    any more, the first day from which rows can takes the place of `history: all`.
    """
    bound = {change.name: change for change in changes if _is_bound(change)}
    return tuple(
        _of_bound(problem, bound[problem.node]) if problem.severity != "refuse" and problem.node in bound else problem
        for problem in problems
    )


def _is_bound(change: NodeChange) -> bool:
    every = next((option for option in change.options if option.history == "all"), None)
    return every is not None and not every.chosen and bool(every.impossible)


def _of_bound(problem: Problem, change: NodeChange) -> Problem:
    left = tuple(remedy for remedy in problem.remedies if not _asks_for_all(remedy, change.name))
    if left == problem.remedies:
        return problem
    effect = "computes the rows from that day on by the new query"
    since = tuple(
        SetKey(node=change.name, key="history", value=option.history, effect=effect)
        for option in change.options
        if option.kind == "since" and not option.chosen and not option.impossible
    )
    return replace(problem, hint="", remedies=(*left, *since))


def _asks_for_all(remedy: Remedy, table: str) -> bool:
    match remedy:
        case SetKey(key="history", value="all") | DropKey(key="history"):
            return True
        case Flag(flag=flag):
            return flag == f"--history {table}=all"
        case _:
            return False


def _refused(
    alternative: Alternative, desired: Desired, verdicts: Verdicts, live: Live,
    *, cache: PlannerCache, allowed: Collection[str],
) -> str:  # fmt: skip
    """Why the plan would be refused with this choice, "" if it would not."""
    assert isinstance(alternative.made, Verdict)
    verdict = alternative.made
    tables = ChainMap({verdict.name: verdict}, dict(verdicts.tables))
    problems, _ = accepted([*verdict.problems, *rules.of_table(verdict, desired, tables, live, cache)], allowed)
    return "; ".join(dict.fromkeys(problem.message for problem in problems if problem.severity == "refuse"))


def _shown(verdict: Verdict) -> str:
    """The values of older rows, in words."""
    if verdict.older_rows:
        return verdict.older_rows
    if verdict.copied is not None and verdict.recomputed is not None and verdict.recomputed.since:
        older = verdict.older or "with the declared defaults"
        return f"before {verdict.recomputed.since} as stored, {older}; from then on as computed"
    return _ANEW if verdict.recomputed is not None else _COPIED
