"""Corrections to sqlglot's Spark dialect, where it parses something else than Spark, or writes a call that is not quite
equivalent."""

from typing import ClassVar

from sqlglot import exp, transforms
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from console.planning.sql.dialect.operators import parenthesised
from console.planning.sql.dialect.pipes import Pipes


def _to_date(self: SparkGenerator, node: exp.TsOrDsToDate) -> str:
    """Keeps the format, which sqlglot drops if it is a cast's default: a cast accepts other texts as well."""
    if node.args.get("format"):
        return self.func("TO_DATE", node.this, self.format_time(node))
    plain: str = SparkGenerator.TRANSFORMS[exp.TsOrDsToDate](self, node)
    return plain


def _log(self: SparkGenerator, node: exp.Log) -> str:
    """Keeps LOG10 and LOG2: `LOG(10, 1000)` is 2.9999999999999996. A base that was written explicitly has a position in
    the text."""
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
        # QUALIFY is kept: in an enclosing query, its names would resolve to other columns
        exp.Select: transforms.preprocess([transforms.unnest_to_explode, transforms.any_to_exists]),
        # a comparison; IS NOT DISTINCT FROM would be a predicate, which binds looser
        exp.NullSafeEQ: lambda self, node: self.binary(node, "<=>"),
        exp.BitwiseLeftShift: lambda self, node: self.binary(node, "<<"),
        exp.BitwiseRightShift: lambda self, node: self.binary(node, ">>"),
    }

    def preprocess(self, expression: exp.Expr) -> exp.Expr:
        return parenthesised(super().preprocess(expression))


class AsRead(Spark):
    """Spark's SQL, written as it was parsed."""

    INTERSECT_BINDS_TIGHTER_THAN_UNION_AND_EXCEPT = True

    Parser = Pipes
    Generator = _Generator
