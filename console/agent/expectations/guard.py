"""Expectations of single rows, evaluated in the job that writes them: the first row that fails a `stop` ends the job
before its commit, without a second read.
"""

from collections.abc import Sequence
from typing import Any

from console.agent import failure
from console.model.expectation import RowCheck
from console.model.live import TableState
from console.model.schema import text_literal

UNEXPECTED = "UNEXPECTED_ROW"  # in Spark's error for a row that fails; it names neither the row nor a value


def row_checks(target: TableState) -> tuple[RowCheck, ...]:
    """The checks that apply to each written row; () if stored rows are merged at read, or stored under other names: these are
    checked at the gate alone."""
    if target.table.kind != "append" or target.newest is not None or target.renamed:
        return ()
    return tuple(check for check in target.checks if isinstance(check, RowCheck))


def stops(checks: Sequence[RowCheck]) -> list[RowCheck]:
    return [check for check in checks if check.severity == "stop"]


def guarded(rows: Any, checks: Sequence[RowCheck]) -> Any:
    """The same rows, as a plan whose job fails at the first one that violates a `stop`.

    As an observed metric, because a filter could be pushed below a join and would then see rows that are never written.
    """
    from pyspark.sql.functions import expr

    conditions = [f"({check.failing})" for check in stops(checks)]
    if not conditions:
        return rows
    raised = f"CAST(raise_error({text_literal(UNEXPECTED)}) AS BOOLEAN)"
    failing = f"count_if(CASE WHEN {' OR '.join(conditions)} THEN {raised} ELSE false END)"
    return rows.observe("expected", expr(failing).alias("failing"))


def refused(error: BaseException) -> bool:
    """Whether a job failed at a row that `guarded` rejected."""
    if isinstance(error, failure.ClassifiedFailure):
        return error.unexpected
    return failure.raised_by_query(error, UNEXPECTED)


class Warnings:
    """Rows that fail a `warn`, counted by the job that writes them."""

    def __init__(self, checks: Sequence[RowCheck]) -> None:
        from pyspark.sql import Observation

        self._checks = [check for check in checks if check.severity == "warn"]
        self._counted = Observation()

    def observed(self, rows: Any) -> Any:
        """The same rows, observed so that the job that reads them counts the failing ones."""
        from pyspark.sql.functions import expr

        counts = [expr(f"count_if({check.failing})").alias(f"n{i}") for i, check in enumerate(self._checks)]
        return rows.observe(self._counted, *counts) if counts else rows

    def lines(self) -> tuple[str, ...]:
        """A line for each expectation that rows of the finished job failed."""
        counts = self._counted.get if self._checks else {}
        numbers = [(check.name, int(counts[f"n{i}"])) for i, check in enumerate(self._checks)]
        return tuple(f"{rows:,} {'row fails' if rows == 1 else 'rows fail'} `{name}`" for name, rows in numbers if rows)
