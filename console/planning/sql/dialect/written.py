"""Spark's SQL as Spark reads it: sqlglot's dialect where it reads another thing, or would write a call that only mostly does
what was read."""

from typing import ClassVar

from sqlglot import exp, transforms
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from console.planning.sql.dialect.operators import parenthesised
from console.planning.sql.dialect.pipes import Pipes


def _to_date(self: SparkGenerator, node: exp.TsOrDsToDate) -> str:
    """With its format, which sqlglot leaves out where it is what a cast takes: a cast takes other texts as well."""
    if node.args.get("format"):
        return self.func("TO_DATE", node.this, self.format_time(node))
    plain: str = SparkGenerator.TRANSFORMS[exp.TsOrDsToDate](self, node)
    return plain


def _log(self: SparkGenerator, node: exp.Log) -> str:
    """LOG10 and LOG2 as such: `LOG(10, 1000)` is 2.9999999999999996. A base that was written has its place in the text."""
    base = node.this
    if isinstance(base, exp.Literal) and base.name in ("2", "10") and "start" not in base.meta and node.expression:
        return self.func(f"LOG{base.name}", node.expression)
    plain: str = self.log_sql(node)
    return plain


class _Generator(SparkGenerator):
    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        exp.TsOrDsToDate: _to_date,
        exp.Log: _log,
        # QUALIFY stays one: in a query around it, its names would stand for other columns
        exp.Select: transforms.preprocess([transforms.unnest_to_explode, transforms.any_to_exists]),
        # a comparison, where IS NOT DISTINCT FROM would be a predicate, which binds looser
        exp.NullSafeEQ: lambda self, node: self.binary(node, "<=>"),
        exp.BitwiseLeftShift: lambda self, node: self.binary(node, "<<"),
        exp.BitwiseRightShift: lambda self, node: self.binary(node, ">>"),
    }

    def preprocess(self, expression: exp.Expr) -> exp.Expr:
        return parenthesised(super().preprocess(expression))


class AsRead(Spark):
    """Spark's SQL as it was read."""

    INTERSECT_BINDS_TIGHTER_THAN_UNION_AND_EXCEPT = True

    Parser = Pipes
    Generator = _Generator
