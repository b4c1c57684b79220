"""Spark's result for a text: the tree from its parser, and its rows."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.planning.oracle.draw import views

_SETTINGS = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.log.level": "OFF", "spark.log.structuredLogging.enabled": "false",
}  # fmt: skip


class Refused(Exception):
    """Spark does not run a text."""


class SparkOracle:
    """One session with the tables of `draw`, or with those that the statements make."""

    def __init__(self, session: Any, statements: Iterable[str] = ()) -> None:
        self.session = session
        self.parser = session._jsparkSession.sessionState().sqlParser()
        for statement in statements or views():
            session.sql(statement)
        self._known: dict[str, list[tuple[str, ...]] | Refused] = {}
        self._frames: dict[str, Any] = {}

    def beside(self, statements: Iterable[str]) -> "SparkOracle":
        """Other tables of the same names, in a session of their own."""
        return SparkOracle(self.session.newSession(), statements)

    def expression(self, text: str) -> str:
        """The tree of an expression, in which spellings of one thing that Spark's parser tells apart are one.

        raises  Refused
        """
        try:
            message: str = self.parser.parseExpression(text).toString()
        except Exception as error:
            raise Refused(str(error).partition("\n\tat ")[0][:300]) from None
        return message.lower().replace("isnotnull(", "not isnull(").replace("'positive(", "positive(")

    def frame(self, sql: str) -> Any:
        """The query analyzed and not run.

        raises  Refused
        """
        if sql not in self._frames:
            try:
                self._frames[sql] = self.session.sql(sql)
            except Exception as error:
                self._frames[sql] = Refused(str(error).partition("\n")[0][:300])
        if isinstance(result := self._frames[sql], Refused):
            raise result
        return result

    def alike(self, one: str, other: str) -> bool:
        """Whether Spark's optimizer makes one plan of both: then their rows need not be asked for.

        raises  Refused
        """
        frames = [self.frame(sql) for sql in (one, other)]
        try:
            plans = [frame._jdf.queryExecution().optimizedPlan() for frame in frames]
        except Exception:  # of rows that stand in the text the optimizer computes some, and what it computes may fail
            return False
        return frames[0].columns == frames[1].columns and bool(plans[0].sameResult(plans[1]))

    def rows(self, sql: str) -> list[tuple[str, ...]]:
        """The names of the columns, and the rows in order.

        raises  Refused
        """
        if sql not in self._known:
            result = self.frame(sql)
            try:
                rows = [tuple(map(repr, row)) for row in result.collect()]
                self._known[sql] = [tuple(name.lower() for name in result.columns), *rows]
            except Exception as error:
                self._known[sql] = Refused(str(error).partition("\n")[0][:300])
        known = self._known[sql]
        if isinstance(known, Refused):
            raise known
        return known

    def forget(self) -> None:
        """What was asked before, which would otherwise fill the memory."""
        self._known.clear()
        self._frames.clear()

    def multiset(self, sql: str) -> Counter[tuple[str, ...]]:
        """The rows without their order, columns by name.

        raises  Refused
        """
        names, *rows = self.rows(sql)
        at = sorted(range(len(names)), key=lambda i: names[i].lower())
        return Counter([tuple(names[i].lower() for i in at), *(tuple(row[i] for i in at) for row in rows)])


@contextmanager
def started() -> Iterator[SparkOracle]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    logging.getLogger("SQLQueryContextLogger").disabled = True  # which tells of every refusal
    try:
        yield SparkOracle(session)
    finally:
        session.stop()
