"""Drawn texts checked with Spark."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from console.planning.compare import compare
from console.planning.sql.compile import NameScope, query
from console.planning.sql.dialect.operators import Level, level
from console.planning.sql.semantics import Unclear
from console.planning.sql.syntax import lenient
from console.planning.sql.tree import DIALECT, Text
from tests.planning.oracle.draw import TABLES, Draw
from tests.planning.oracle.judge import Refused, SparkOracle

KNOWN = NameScope(TABLES)
OTHERS = SparkParser


@dataclass
class OracleTally:
    """What came out of so many texts. refused: by us although Spark takes it;  wrong: (seed, what differs)"""

    agree: int = 0
    refused: int = 0
    not_spark: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: "OracleTally") -> None:
        self.agree += other.agree
        self.refused += other.refused
        self.not_spark += other.not_spark
        self.wrong += other.wrong


def expressions(spark: SparkOracle, seeds: Iterable[int]) -> OracleTally:
    """Our tree, with every pair of parentheses written and again with as few as we write, is Spark's."""
    tally = OracleTally()
    for seed in seeds:
        text = Draw(seed).expression(4)
        try:
            theirs = spark.expression(text)
        except Refused:
            tally.not_spark += 1
            continue
        try:
            tree = sqlglot.parse_one(f"SELECT {text}", read=DIALECT).selects[0]
        except SqlglotError:
            tally.refused += 1
            continue
        for ours in (grouped(tree).sql(DIALECT), bare(tree).sql(DIALECT)):
            try:
                message = spark.expression(ours)
            except Refused as error:
                message = str(error)
            if message != theirs:
                tally.wrong.append((seed, f"{text}\n  to Spark {theirs}\n  ours     {message}"))
                break
        else:
            tally.agree += 1
    return tally


def grouped(tree: exp.Expr) -> exp.Expr:
    """Every operator in parentheses of its own."""

    def wrapped(node: exp.Expr) -> exp.Expr:
        operands = [(key, operand) for key, operand in node.args.items() if isinstance(operand, exp.Expr)]
        for key, operand in operands:
            chained = type(operand) is type(node) and isinstance(node, exp.Connector)  # Spark balances its chains
            chained = chained or isinstance(node, exp.Escape)  # is one with its LIKE
            if not chained and level(node) < Level.PRIMARY and level(operand) < Level.PRIMARY:
                node.set(key, exp.Paren(this=operand))
        return node

    return tree.copy().transform(wrapped)


def bare(tree: exp.Expr) -> exp.Expr:
    """Without the parentheses that were written: the writer puts them where they are needed."""
    return tree.copy().transform(lambda node: node.this if isinstance(node, exp.Paren) else node)


def statements(spark: SparkOracle, seeds: Iterable[int]) -> OracleTally:
    """What is compiled of a text gives its rows, in its order where it has one."""
    tally = OracleTally()
    for seed in seeds:
        sql = Draw(seed).statement()
        try:
            spark.frame(sql)
        except Refused:
            tally.not_spark += 1
            continue
        done = query(Text(sql=sql), KNOWN)
        if done is None:
            tally.refused += 1
        elif (differs := _differ(spark, sql, done.sql)) is None:
            tally.not_spark += 1
        elif differs:
            tally.wrong.append((seed, f"{sql}\n  sent {done.sql}\n  {differs}"))
        else:
            tally.agree += 1
    return tally


def _differ(spark: SparkOracle, sql: str, sent: str) -> str | None:
    """ "" where the rows are the same, None where the text itself fails on them."""
    try:
        if spark.alike(sql, sent):
            return ""
    except Refused as error:
        return f"Spark does not take it: {error}"
    try:
        want = spark.rows(sql)
    except Refused:
        return None
    try:
        have = spark.rows(sent)
    except Refused as error:
        return f"Spark does not run it: {error}"
    ordered = "order by" in sql.rsplit("|>", 1)[-1].rsplit(")", 1)[-1]
    if want[0] == have[0] and (want[1:] == have[1:] if ordered else sorted(want[1:]) == sorted(have[1:])):
        return ""
    return f"{want} became {have}"


def pairs(spark: SparkOracle, seeds: Iterable[int]) -> OracleTally:
    """Texts of few names, gathered by what we take them to mean; each gathering has one set of rows."""
    tally, alike = OracleTally(), defaultdict(list)
    for seed in seeds:
        for sql in Draw(seed).variants():
            try:
                message = lenient.understood(lenient.parsed(sql), SCHEMA)
            except Unclear:
                continue
            columns = tuple((name, value.hash) for name, value in sorted(message.relation.columns.items()))
            alike[message.relation.rows, columns].append((seed, sql))
    for texts in alike.values():
        first = texts[0][1]
        for seed, sql in {sql: (seed, sql) for seed, sql in texts[1:] if sql != first}.values():
            if not compare(first, sql, TABLES).equal:
                continue
            try:
                same = spark.alike(first, sql) or spark.multiset(first) == spark.multiset(sql)
            except Refused:
                tally.not_spark += 1
                continue
            if same:
                tally.agree += 1
            else:
                tally.wrong.append((seed, f"{first}\n{sql}\n  {spark.rows(first)}\n  {spark.rows(sql)}"))
    return tally


def _schema() -> dict[str, object]:
    from console.planning.compare import _source

    return {name: _source(name, columns) for name, columns in TABLES.items()}


SCHEMA = _schema()
