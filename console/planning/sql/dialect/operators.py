"""Precedence of Spark's operators, for parsing and for writing expressions.

    OR < AND < NOT < one predicate (BETWEEN, IN, LIKE, RLIKE, IS) < comparisons < | < ^ < & < shifts < + - || < * / % DIV
    < unary + - ~ < COLLATE, ::, [], .

source  the rules booleanExpression, predicate and valueExpression of Spark's SqlBaseParser.g4
"""

from enum import IntEnum
from typing import ClassVar

from sqlglot import TokenType, exp
from sqlglot.parsers.spark import SparkParser


class Level(IntEnum):
    """Precedence levels, the loosest first."""

    OR = 0
    AND = 1
    NOT = 2
    PREDICATE = 3
    COMPARISON = 4
    BIT_OR = 5
    BIT_XOR = 6
    BIT_AND = 7
    SHIFT = 8
    SUM = 9
    PRODUCT = 10
    UNARY = 11
    PRIMARY = 12


_TOKENS: dict[TokenType, tuple[Level, type[exp.Binary]]] = {
    TokenType.EQ: (Level.COMPARISON, exp.EQ),
    TokenType.NEQ: (Level.COMPARISON, exp.NEQ),
    TokenType.NULLSAFE_EQ: (Level.COMPARISON, exp.NullSafeEQ),
    TokenType.LT: (Level.COMPARISON, exp.LT),
    TokenType.LTE: (Level.COMPARISON, exp.LTE),
    TokenType.GT: (Level.COMPARISON, exp.GT),
    TokenType.GTE: (Level.COMPARISON, exp.GTE),
    TokenType.PIPE: (Level.BIT_OR, exp.BitwiseOr),
    TokenType.CARET: (Level.BIT_XOR, exp.BitwiseXor),
    TokenType.AMP: (Level.BIT_AND, exp.BitwiseAnd),
    TokenType.PLUS: (Level.SUM, exp.Add),
    TokenType.DASH: (Level.SUM, exp.Sub),
    TokenType.DPIPE: (Level.SUM, exp.DPipe),
    TokenType.STAR: (Level.PRODUCT, exp.Mul),
    TokenType.SLASH: (Level.PRODUCT, exp.Div),
    TokenType.MOD: (Level.PRODUCT, exp.Mod),
    TokenType.DIV: (Level.PRODUCT, exp.IntDiv),
}
# infix and prefix operators; everything else, above all calls, delimits its operands itself
_LEVELS: dict[type[exp.Expr], Level] = {
    **{kind: level for level, kind in _TOKENS.values()},
    exp.Or: Level.OR, exp.And: Level.AND, exp.Not: Level.NOT, exp.Between: Level.PREDICATE, exp.In: Level.PREDICATE,
    exp.Like: Level.PREDICATE, exp.ILike: Level.PREDICATE, exp.Escape: Level.PREDICATE, exp.RegexpLike: Level.PREDICATE,
    exp.Is: Level.PREDICATE, exp.NullSafeNEQ: Level.PREDICATE, exp.Neg: Level.UNARY, exp.BitwiseNot: Level.UNARY,
    exp.BitwiseLeftShift: Level.SHIFT, exp.BitwiseRightShift: Level.SHIFT,
    exp.Collate: Level.OR,  # a `-` after the name of a collation would be taken for a part of it
}  # fmt: skip
_PREDICATES = (
    TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.IS,
)  # fmt: skip
_POSTFIX = (exp.Bracket, exp.Dot, exp.Collate)
_UNARY_SIGNS = {TokenType.DASH: exp.Neg, TokenType.TILDE: exp.BitwiseNot}
_LITERAL_ENDS = (TokenType.DCOLON, TokenType.COLLATE, TokenType.L_BRACKET, TokenType.DOT)
_DIGITS = (TokenType.HEX_STRING, TokenType.BIT_STRING)
_LIKES, _SEVERAL = (TokenType.LIKE, TokenType.ILIKE), ("ANY", "ALL", "SOME")
# source  unitInMultiUnits of Spark's SqlBaseParser.g4
_UNITS = frozenset(
    name + end
    for name in ("NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
    for end in ("", "S")
)
_QUANTITIES = (TokenType.STRING, TokenType.NUMBER)
_SIGNS = (TokenType.PLUS, TokenType.DASH)


class Intervals(SparkParser):
    """Parses `INTERVAL 1 DAY - 2 HOURS` as one interval, and `INTERVAL 1 DAY + 2` as a sum: sqlglot takes any number or
    text after an interval for a part of it, and a unit after `- 2` for a name."""

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        value = self._quantity()
        # a column of that name, unless a literal follows, and a unit after a number
        literal = isinstance(value, exp.Literal) or (isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal))
        if value is None or not literal or not (value.is_string or self._curr.text.upper() in _UNITS):
            self._retreat(index)
            return None
        interval: exp.Add | exp.Interval = self._parse_interval_span(value, parse_function_unit=parse_function_unit)
        several = self._prev.text.upper() in _UNITS and not isinstance(interval.args.get("unit"), exp.IntervalSpan)
        while several and self._another_unit_follows():
            value = self._quantity()
            assert value is not None
            interval = self.expression(exp.Add(this=interval, expression=self._parse_interval_span(value)))
        return interval

    def _quantity(self) -> exp.Expr | None:
        self._match(TokenType.PLUS)
        return self._parse_primary() if self._curr.token_type == TokenType.STRING else self._parse_unary()

    def _another_unit_follows(self) -> bool:
        at = self._index + (self._curr.token_type in _SIGNS)
        if at + 1 >= len(self._tokens):
            return False
        return self._tokens[at].token_type in _QUANTITIES and self._tokens[at + 1].text.upper() in _UNITS


class Operators(Intervals):
    """Parses operators as Spark does; sqlglot's own levels are those of most other engines."""

    ARRAY_CONSTRUCTORS: ClassVar = {}  # `array[0]` is an item of a column

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        if self._curr.token_type == TokenType.ALIAS and self._next.token_type == TokenType.STRING:
            self.raise_error("a name stands in backquotes: to Spark this is a text")
        return super()._parse_alias(this, explicit)

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """NOT of a condition, or a value with at most one predicate."""
        if self._match(TokenType.NOT):
            return self.expression(exp.Not(this=self._parse_equality()))
        this = self._parse_bitwise()
        if this is None or not parse_is:
            return this
        negated = self._curr.token_type == TokenType.NOT and self._next.token_type in _PREDICATES
        if not negated and self._curr.token_type not in _PREDICATES:
            return this
        condition = self._predicate(this)
        if self._curr.token_type in (*_PREDICATES, *_TOKENS):
            self.raise_error("Spark takes one predicate after a value: put it in parentheses")
        return condition

    def _predicate(self, this: exp.Expr) -> exp.Expr | None:
        negated = bool(self._match(TokenType.NOT))
        self._match_set(_PREDICATES)
        kind = self._prev.token_type
        if kind == TokenType.IS:
            return self._is(this)
        several = kind in _LIKES and self._curr.text.upper() in _SEVERAL and self._next.token_type == TokenType.L_PAREN
        condition = self.RANGE_PARSERS[kind](self, this)
        patterns = condition.args.get("expression") if condition is not None else None
        if several and not (
            isinstance(patterns, (exp.Any, exp.All)) and isinstance(patterns.this, (exp.Tuple, exp.Paren))
        ):
            self.raise_error("to Spark LIKE ANY (…) followed by an operator is a call of ANY: put it in parentheses")
        return self._negate_range(condition) if negated else condition

    def _is(self, this: exp.Expr) -> exp.Expr | None:
        negated = bool(self._match(TokenType.NOT))
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.expression(kind(this=this, expression=self._parse_bitwise()))
        if self._match_set((TokenType.TRUE, TokenType.FALSE)):
            constant: exp.Expr = exp.Boolean(this=self._prev.token_type == TokenType.TRUE)
        elif self._match(TokenType.NULL) or self._match_text_seq("UNKNOWN"):
            constant = exp.Null()
        else:
            self.raise_error("IS is followed by NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
            return None
        condition = self.expression(exp.Is(this=this, expression=constant))
        return self.expression(exp.Not(this=condition)) if negated else condition

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        return self._operators(Level.COMPARISON, this)

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        return this or self._parse_bitwise()

    def _parse_bitwise(self) -> exp.Expr | None:
        """Spark's valueExpression, comparisons included."""
        return self._operators(Level.COMPARISON)

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        return self._operators(Level.SUM, percent=parse_mod)

    def _parse_factor(self, parse_mod: bool = True) -> exp.Expr | None:
        return self._operators(Level.PRODUCT, percent=parse_mod)

    def _operators(self, loosest: Level, this: exp.Expr | None = None, percent: bool = True) -> exp.Expr | None:
        """Operators of this level and the tighter ones, those of one level from left to right."""
        this = this or self._parse_unary()
        while this is not None and (operator := self._operator(percent)) is not None and operator[0] >= loosest:
            level, kind, length = operator
            index = self._index
            self._advance(length)
            word, comments = self._prev.text, self._prev_comments
            right = self._operators(Level(level + 1), percent=percent)
            if right is None and kind is exp.IntDiv and word.isalpha():  # a name
                self._retreat(index)
                return this
            if kind is None:
                this = self.expression(exp.Anonymous(this="shiftrightunsigned", expressions=[this, right]))
                continue
            this = self.expression(kind(this=this, expression=right), comments=comments)
            if isinstance(this, exp.Div):
                this.set("typed", self.dialect.TYPED_DIVISION)
                this.set("safe", self.dialect.SAFE_DIVISION)
            elif isinstance(this, exp.DPipe):
                this.set("safe", not self.dialect.STRICT_STRING_CONCAT)
        return this

    def _operator(self, percent: bool) -> tuple[Level, type[exp.Binary] | None, int] | None:
        """The next operator and its number of tokens; None as its kind for `>>>`."""
        token = self._curr.token_type
        if token in (TokenType.LT, TokenType.GT):
            length = self._run_of(token)
            if length == 2:
                return Level.SHIFT, exp.BitwiseLeftShift if token == TokenType.LT else exp.BitwiseRightShift, 2
            if length == 3 and token == TokenType.GT:
                return Level.SHIFT, None, 3
        if token == TokenType.MOD and not percent:
            return None
        if (operator := _TOKENS.get(token)) is None:
            return None
        return *operator, 1

    def _run_of(self, token: TokenType) -> int:
        """The number of these tokens in a row without a space."""
        length = 1
        while (at := self._index + length) < len(self._tokens):
            before, after = self._tokens[at - 1], self._tokens[at]
            if after.token_type != token or after.start != before.end + 1:
                break
            length += 1
        return length

    def build_cast(self, strict: bool, **kwargs: object) -> exp.Expr:
        """`-1.5BD` is a literal with a sign, which sqlglot's own parsing of its digits does not accept."""
        of = kwargs["this"]
        if self._prev.text.upper() != "BD" or not isinstance(of, exp.Paren):
            return super().build_cast(strict, **kwargs)
        cast = super().build_cast(strict, **{**kwargs, "this": of.this.this})
        if cast.this.is_string:
            cast.set("this", exp.Literal.string(f"-{cast.this.name}"))
            return cast
        return self.expression(exp.Neg(this=cast))

    def _parse_unary(self) -> exp.Expr | None:
        if self._match(TokenType.PLUS):  # which converts a text to a number
            return self.expression(exp.Anonymous(this="positive", expressions=[self._parse_unary()]))
        if self._match_set(_UNARY_SIGNS):
            sign = self._prev.token_type
            if sign == TokenType.DASH and (literal := self._negative_literal()) is not None:
                return literal
            return self.expression(_UNARY_SIGNS[sign](this=self._parse_unary()))
        if (
            self._curr.token_type == TokenType.ARRAY and self._next.token_type == TokenType.L_BRACKET
        ):  # a column, no call
            self._advance()
            name = exp.to_identifier(self._prev.text).update_positions(self._prev)
            return self._collated(self._parse_column_ops(self.expression(exp.Column(this=name))))
        if self._curr.token_type in _DIGITS and self.sql[self._curr.start].isdigit():
            self.raise_error(f"{self.sql[self._curr.start : self._curr.end + 1]} is not a number to Spark")
        value = self._collated(self._parse_type())
        if value is not None and self._curr.token_type == TokenType.COLON:
            self.raise_error(
                "a path into a VARIANT (`column:path`) is not understood: compute it in the pipeline before"
            )
        return value

    def _collated(self, this: exp.Expr | None) -> exp.Expr | None:
        while this is not None and self._match(TokenType.COLLATE):
            names = self._parse_csv(self._parse_id_var, sep=TokenType.DOT)
            collation = exp.var(".".join(name.name for name in names))
            this = self._parse_column_ops(self.expression(exp.Collate(this=this, expression=collation)))
        return this

    def _negative_literal(self) -> exp.Expr | None:
        """`-1::string` is '-1': for Spark the sign belongs to the literal, and binds before the cast."""
        if self._curr.token_type != TokenType.NUMBER or self._next.token_type not in _LITERAL_ENDS:
            return None
        digits = self._parse_primary()
        return self._collated(self._parse_column_ops(self.expression(exp.Paren(this=exp.Neg(this=digits)))))


def parenthesised(tree: exp.Expr) -> exp.Expr:
    """The tree with parentheses wherever Spark would otherwise parse a different one; changed in place."""
    for node in list(tree.walk()):
        for key, least in _needs(node):
            operand = node.args.get(key)
            if isinstance(operand, exp.Expr) and level(operand) < least:
                node.set(key, exp.Paren(this=operand))
    return tree


def _needs(node: exp.Expr) -> list[tuple[str, int]]:
    """The operands of a node, and the level that each needs."""
    own = _LEVELS.get(type(node))
    match node:
        case exp.And() | exp.Or():
            return [("this", level(node)), ("expression", level(node))]
        case exp.Not():
            return [("this", Level.NOT)]
        case exp.Escape():
            return [("this", Level.PREDICATE)]
        case exp.Between():
            return [(key, Level.COMPARISON) for key in ("this", "low", "high")]
        case exp.In():
            return [("this", Level.COMPARISON)]
        case _ if own is Level.PREDICATE:
            return [("this", Level.COMPARISON), ("expression", Level.COMPARISON)]
        case exp.Neg() | exp.BitwiseNot():
            return [("this", Level.UNARY)]
        case _ if isinstance(node, _POSTFIX):
            return [("this", Level.PRIMARY)]
        case _ if own is not None:
            return [("this", own), ("expression", own + 1)]
    return []


def level(node: exp.Expr) -> int:
    """The binding strength of a node."""
    return _LEVELS.get(type(node), Level.PRIMARY)
