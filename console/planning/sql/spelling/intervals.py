"""Intervals of several units, as Spark reads them: sqlglot takes any number or text behind an interval for a part of it,
and a unit behind `- 2` for a name."""

from sqlglot import TokenType, exp
from sqlglot.parsers.spark import SparkParser

# source  unitInMultiUnits of Spark's SqlBaseParser.g4
_UNITS = frozenset(
    name + end
    for name in ("NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
    for end in ("", "S")
)
_VALUES = (TokenType.STRING, TokenType.NUMBER)
_SIGNS = (TokenType.PLUS, TokenType.DASH)


class Intervals(SparkParser):
    """Reads `INTERVAL 1 DAY - 2 HOURS` as one interval, and `INTERVAL 1 DAY + 2` as a sum."""

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        value = self._quantity()
        # a column of that name, unless a literal stands behind it, and a unit behind a number
        literal = isinstance(value, exp.Literal) or (isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal))
        if value is None or not literal or not (value.is_string or self._curr.text.upper() in _UNITS):
            self._retreat(index)
            return None
        found: exp.Add | exp.Interval = self._parse_interval_span(value, parse_function_unit=parse_function_unit)
        several = self._prev.text.upper() in _UNITS and not isinstance(found.args.get("unit"), exp.IntervalSpan)
        while several and self._another_unit_follows():
            value = self._quantity()
            assert value is not None
            found = self.expression(exp.Add(this=found, expression=self._parse_interval_span(value)))
        return found

    def _quantity(self) -> exp.Expr | None:
        self._match(TokenType.PLUS)
        return self._parse_primary() if self._curr.token_type == TokenType.STRING else self._parse_unary()

    def _another_unit_follows(self) -> bool:
        at = self._index + (self._curr.token_type in _SIGNS)
        if at + 1 >= len(self._tokens):
            return False
        return self._tokens[at].token_type in _VALUES and self._tokens[at + 1].text.upper() in _UNITS
