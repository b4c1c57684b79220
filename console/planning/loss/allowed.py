"""Losses that an operator accepts by name, `CODE:table`, and only those."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from console.errors import Problem
from console.remedy import Flag

LOSSES = frozenset(("C101", "C102", "C103", "C119"))  # refusals because of a loss
PROTOCOL = "C122"


def accepting(code: str, table: str, effect: str) -> Flag:
    """The option that accepts a loss. effect: what it does to the rows"""
    return Flag(flag=f"--allow-destructive {code}:{table}", effect=effect)


def accepted(problems: Iterable[Problem], allowed: Collection[str]) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """The problems, with accepted ones no longer refusing, and the acceptances that were used.

    allowed  `C101:requests`; `C122:*` accepts every protocol change
    """
    judged: list[Problem] = []
    used: set[str] = set()
    for problem in problems:
        name = f"{problem.code}:{problem.node}"
        acceptance = name if name in allowed and problem.code in LOSSES else ""
        if problem.code == PROTOCOL and f"{PROTOCOL}:*" in allowed:
            acceptance = name
        if acceptance and problem.severity == "refuse":
            used.add(acceptance)
            judged.append(replace(problem, severity="allowed"))
        else:
            judged.append(problem)
    return tuple(judged), tuple(sorted(used))
