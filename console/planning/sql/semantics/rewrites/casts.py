"""Casts without effect, literals that are cast to another form of themselves, and parts of a date."""

from dataclasses import replace

from sqlglot import exp

from console.planning.sql.relation import Value, combined
from console.planning.sql.semantics import forms, functions
from console.planning.sql.semantics.evaluator import Evaluator
from console.planning.sql.semantics.rewrites import simpler
from console.planning.sql.semantics.rewrites.numbers import integer

_DATE_PARTS = {
    "year": "Year", "years": "Year", "month": "Month", "months": "Month", "day": "Day", "days": "Day", "hour": "Hour",
    "hours": "Hour", "minute": "Minute", "minutes": "Minute", "quarter": "Quarter", "week": "WeekOfYear",
    "dayofmonth": "Day", "weekofyear": "WeekOfYear",
}  # fmt: skip


def cast(node: exp.Cast, values: Evaluator) -> Value:
    careful = "try_" if isinstance(node, exp.TryCast) and node.args.get("safe") else ""
    how = "".join(f" {key}" for key in ("format", "action", "default") if node.args.get(key))
    more = [values.value(node.args[key]) for key in ("format", "default") if isinstance(node.args.get(key), exp.Expr)]
    to, value = forms.type_of(node.to), values.value(node.this)
    if value.type and forms.type_named(value.type) == to and not how:
        return value
    if careful or how:
        return combined(f"{careful}cast:{to}{how}", [value, *more])
    if (literal := _literal_cast(node, to)) is not None:
        return literal
    return replace(combined(forms.TO_DATE if to == "date" else f"cast:{to}", [value]), type=to)


def _literal_cast(node: exp.Cast, to: str) -> Value | None:
    """A literal in a cast as the literal of that type."""
    of = node.this.unnest()
    if not isinstance(of, exp.Literal):
        return None
    if to == "int" and of.name.isdigit() and (number := integer(exp.Literal.number(of.name))) is not None:
        return simpler.integer(number)
    if to == "string" and (of.is_string or of.name.isdigit()):
        text = of.name if of.is_string else str(int(of.name))
        return simpler.text(text)
    return None


def date_part(node: exp.Expr, values: Evaluator) -> Value | None:
    """`extract(year FROM x)`, `date_part('year', x)` and `year(x)`."""
    name, of = type(node).__name__, node.args.get("this")
    if isinstance(node, exp.Extract):
        name, of = _DATE_PARTS.get(node.name.lower(), ""), node.expression
    elif (
        functions.called(node) in ("date_part", "datepart")
        and len(node.expressions) == 2
        and isinstance(node.expressions[0], exp.Literal)
    ):
        name, of = _DATE_PARTS.get(node.expressions[0].name.lower(), ""), node.expressions[1]
    elif functions.called(node) in _DATE_PARTS and len(node.expressions) == 1:
        name, of = _DATE_PARTS[functions.called(node)], node.expressions[0]
    if name not in _DATE_PARTS.values() or not isinstance(of, exp.Expr):
        return None
    bare = name not in ("Hour", "Minute") and isinstance(of, exp.TsOrDsToDate) and not of.args.get("format")
    return combined(name, [values.value(of.this if bare else of)])
