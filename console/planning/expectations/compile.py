"""A table's expectations as SQL over its logical columns. Names and conditions are checked like those of any query."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from sqlglot import exp

from console.errors import Problem
from console.model.expectation import (
    AcceptedValues,
    DayCheck,
    Expectation,
    ExpectationCheck,
    Fresh,
    Holds,
    InRange,
    NotNull,
    RowCheck,
    RowRule,
    RowsOfDayBefore,
    UniqueInDay,
)
from console.model.schema import Table, quoted, types
from console.planning.sql.compile import ONE_ROW, row_condition
from console.planning.sql.tree import Text, render
from console.remedy import Edit


def compiled(table: Table, keys: Sequence[str]) -> tuple[tuple[ExpectationCheck, ...], tuple[Problem, ...]]:
    """The checks of a table, in the order of its file, and the problems of its conditions.

    keys  the columns that identify its rows, of an aggregate or a table that keeps the newest
    """
    checks: list[ExpectationCheck] = []
    problems: list[Problem] = []
    named_by = _naming(table, keys)
    for expected in table.expectations:
        match expected.rule:
            case UniqueInDay() | Fresh() | RowsOfDayBefore() as rule:
                checks.append(DayCheck(name=expected.name, severity=expected.severity, rule=rule, keys=tuple(named_by)))
            case rule:
                failing, about, wrong = _failing(rule, expected, table)
                problems += wrong
                left = tuple(key for key in named_by if key.lower() not in about)
                checks.append(RowCheck(name=expected.name, severity=expected.severity, failing=failing, keys=left))
    return tuple(checks), tuple(problems)


def _naming(table: Table, keys: Sequence[str]) -> list[str]:
    """The columns that identify a row in reports: its key, or else its clustering columns, and its time."""
    columns = (*(table.key or keys or table.cluster_by), *((table.time,) if table.time else ()))
    return list(dict.fromkeys(columns))


def _failing(rule: RowRule, expected: Expectation, table: Table) -> tuple[str, frozenset[str], Sequence[Problem]]:
    """The condition that failing rows meet, the columns that it reads (lower case), and its problems."""
    match rule:
        case NotNull(column):
            return f"{quoted(column)} IS NULL", frozenset({column.lower()}), ()
        case AcceptedValues(column, values):
            return _unless(f"{quoted(column)} IN ({', '.join(values)})", column), frozenset({column.lower()}), ()
        case InRange(column, least, most):
            bounds = [f"{quoted(column)} {sign} {bound}" for sign, bound in ((">=", least), ("<=", most)) if bound]
            return _unless(" AND ".join(bounds), column), frozenset({column.lower()}), ()
        case Holds(sql):
            return _condition(sql, expected, table)
        case other:
            assert_never(other)


def _unless(holds: str, column: str) -> str:
    """NULL passes: NOT NULL is a rule of its own."""
    return f"{quoted(column)} IS NOT NULL AND NOT coalesce({holds}, false)"


def _condition(sql: str, expected: Expectation, table: Table) -> tuple[str, frozenset[str], Sequence[Problem]]:
    text = Text(sql=sql, where=table.where, node=table.name)
    row = row_condition(text, types(table.columns))
    if row is None:
        return "", frozenset(), _placed(text.problems, expected, table)
    about = frozenset(column.name.lower() for column in row.find_all(exp.Column))
    return f"NOT coalesce({render(row)}, false)", about, ()


def _placed(problems: Iterable[Problem], expected: Expectation, table: Table) -> list[Problem]:
    """The problems, located at the table's file: the query around the condition is not the operator's."""
    return [
        Problem(
            code=problem.code,
            message=f"expectation `{expected.name}` of {table.name}: {problem.message}",
            where=table.where,
            node=table.name,
            remedies=problem.remedies or (Edit(node=table.name, how=ONE_ROW),),
        )
        for problem in problems
    ]
