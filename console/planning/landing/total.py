"""Total expressions, which cannot fail for any row: only these may be computed at every read of a landing table."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from console.planning.sql.convert import kept
from console.planning.sql.syntax.argument import INTEGERS
from console.planning.sql.tree import DIALECT, kind

_ANY = ""  # NULL, which is of every type
_SAME_TYPE = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_TEXTS = (exp.Upper, exp.Lower, exp.Trim)
_TIMES = ("date", "timestamp", "timestamp_ntz")


def type_if_total(node: exp.Expr, columns: Mapping[str, str]) -> str | None:
    """The type of a total expression; None if it may fail or its type is not known.

    columns  in lower case → Spark type
    """
    match node:
        case exp.Paren():
            return type_if_total(node.this, columns)
        case exp.Column():
            return columns.get(node.name.lower())
        case exp.Null():
            return _ANY
        case exp.Boolean():
            return "boolean"
        case exp.Neg() if isinstance(node.this, exp.Literal):
            return type_if_total(node.this, columns)
        case exp.Literal():
            return "string" if node.is_string else "int" if node.is_int and abs(int(node.name)) < 1 << 31 else None
    return _Types(columns).of_call(node)


@dataclass(frozen=True, slots=True)
class _Types:
    columns: Mapping[str, str]

    def of_call(self, node: exp.Expr) -> str | None:
        match node:
            case exp.Cast():
                was, to = self._one(node.this), kind(node.to.sql(DIALECT))
                tried = bool(node.args.get("safe"))
                return to if was is not None and (was == _ANY or _converts(was, to, tried)) else None
            case exp.Coalesce():
                return self._common(node.this, *node.expressions)
            case exp.If():
                return self._common(node.args["true"], node.args.get("false")) if self._truth(node.this) else None
            case exp.Case() if node.this is None:
                branches = node.args["ifs"]
                values = (*(branch.args["true"] for branch in branches), node.args.get("default"))
                return self._common(*values) if all(self._truth(branch.this) for branch in branches) else None
            case exp.Concat():
                return "string" if self._common(*node.expressions) == "string" else None
            case exp.JSONExtractScalar():
                return (
                    "string" if self._one(node.this) == "string" and isinstance(node.expression, exp.JSONPath) else None
                )
            case _ if isinstance(node, _TEXTS) and not node.args.get("expression"):
                return "string" if self._one(node.this) == "string" else None
        return "boolean" if self._compares(node) else None

    def _compares(self, node: exp.Expr) -> bool:
        match node:
            case exp.And() | exp.Or():
                return self._truth(node.this) and self._truth(node.expression)
            case exp.Not():
                return self._truth(node.this)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._one(node.this) is not None
        return isinstance(node, _SAME_TYPE) and self._common(node.this, node.expression) is not None

    def _one(self, node: exp.Expr | None) -> str | None:
        return _ANY if node is None else type_if_total(node, self.columns)

    def _common(self, *nodes: exp.Expr | None) -> str | None:
        types = {self._one(node) for node in nodes} - {_ANY}
        return types.pop() if len(types) == 1 else None

    def _truth(self, node: exp.Expr) -> bool:
        return self._one(node) in ("boolean", _ANY)


def _converts(old: str, new: str, tried: bool) -> bool:
    """Whether CAST cannot fail. TRY_CAST returns NULL instead, except for pairs of types that Spark refuses altogether."""
    if kept(old, new) in ("same", "wider", "whole") and "<" not in old + new:
        return True
    pairs = ((_number, _number), (_text, _simple), (_time, _time))
    return tried and any(was(old) and now(new) for was, now in pairs)


def _number(type: str) -> bool:
    return type in (*INTEGERS, "float", "double") or type.startswith("decimal")


def _text(type: str) -> bool:
    return type == "string"


def _time(type: str) -> bool:
    return type in _TIMES


def _simple(type: str) -> bool:
    return _number(type) or _text(type) or _time(type) or type == "boolean"
