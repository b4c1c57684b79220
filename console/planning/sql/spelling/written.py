"""Trees back to Spark SQL, where sqlglot would write a call that only mostly does what was read."""

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator


def _to_date(self: SparkGenerator, node: exp.TsOrDsToDate) -> str:
    """With its format, which sqlglot leaves out where it is what a cast takes: a cast takes other texts as well."""
    if node.args.get("format"):
        return self.func("TO_DATE", node.this, self.format_time(node))
    plain: str = SparkGenerator.TRANSFORMS[exp.TsOrDsToDate](self, node)
    return plain


class _Generator(SparkGenerator):
    TRANSFORMS: ClassVar = {**SparkGenerator.TRANSFORMS, exp.TsOrDsToDate: _to_date}


class AsRead(Spark):
    """Spark's SQL as it was read."""

    Generator = _Generator
