"""Normal forms of nodes: types, units, frames, and functions with two spellings."""

from collections.abc import Mapping
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.planning.sql.semantics import functions
from console.planning.sql.tree import DIALECT, kind

_UNITS = {"MM": "MONTH", "MON": "MONTH", "YY": "YEAR", "YYYY": "YEAR", "DD": "DAY"}  # of trunc and date_trunc
TO_DATE = "TsOrDsToDate/safe=True/this"  # for a time it is a cast
_DATES = ("date", "timestamp", "timestamp_ntz", "timestamp_ltz")
# calls by name and number of arguments: the function of which they are another spelling, and its argument order
_CALLED = {
    ("locate", 2): ("StrPosition/substr/this", (0, 1)),
    ("shiftleft", 2): ("BitwiseLeftShift/expression/this", (1, 0)),
    ("shiftright", 2): ("BitwiseRightShift/expression/this", (1, 0)),
    ("to_date", 1): (TO_DATE, (0,)),
}


def mentions(node: exp.Expr, name: str) -> bool:
    return any(column.name.lower() == name and not column.table for column in node.find_all(exp.Column))


def type_of(node: exp.Expr) -> str:
    """A type in one spelling, with its collation; field names as written, since `to_json` writes them."""
    text = node.sql(DIALECT)
    if node.find(exp.ColumnDef):
        return text.replace("`", "")
    try:
        name = kind(text)
    except (ValueError, SqlglotError):
        name = text.lower()
    collate = node.args.get("collate")
    return f"{name} {collate.sql(DIALECT).upper()}" if isinstance(collate, exp.Expr) else name


@lru_cache(maxsize=4096)
def type_named(type: str) -> str:
    """A declared type as `type_of` spells it, with its collation, which `DataType.build` leaves out."""
    try:
        cast = sqlglot.parse_one(f"CAST(NULL AS {type})", read=DIALECT)
    except SqlglotError:
        return type
    return type_of(cast.to) if isinstance(cast, exp.Cast) else type


@lru_cache(maxsize=4096)
def field(type: str, name: str) -> tuple[str, str]:
    """The field that `x.name` reads of a type: its name, folded where case does not matter, and its type.

    A struct's fields are looked up without regard to case; a map's keys, and names of an unknown type, are data.
    """
    if not type:
        return name, ""
    try:
        of = exp.DataType.build(type, dialect=DIALECT)
    except (ValueError, SqlglotError):
        return name, ""
    lists = 0
    while of.this == exp.DataType.Type.ARRAY and of.expressions:
        of, lists = of.expressions[0], lists + 1
    fields = of.expressions if of.this == exp.DataType.Type.STRUCT else []
    for one in fields:
        if one.name.lower() == name.lower() and isinstance(one.args.get("kind"), exp.Expr):
            inner = one.args["kind"].sql(DIALECT)
            return name.lower(), f"{'ARRAY<' * lists}{inner}{'>' * lists}"
    return name.lower() if fields else name, ""


def is_unit(node: exp.Expr, key: str, item: exp.Expr) -> bool:
    """Whether an argument is a unit of time, which is not data: HOUR and 'hour' are the same."""
    literal = isinstance(item, exp.Var) or (isinstance(item, exp.Literal) and item.is_string)
    return literal and (key == "unit" or functions.called(node) in ("date_trunc", "trunc"))


def unit(node: exp.Expr, item: exp.Expr) -> str:
    name = item.name.upper()
    cuts = isinstance(node, (exp.DateTrunc, exp.TimestampTrunc)) or functions.called(node) in ("date_trunc", "trunc")
    return _UNITS.get(name, name) if cuts else name


def another(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The label and arguments of the normal form of a call."""
    if isinstance(node, exp.Left):
        return "Substring/length/start/this", [node.expression, exp.Literal.number(1), node.this]
    if (name := functions.called(node)) and (form := _CALLED.get((name, len(node.expressions)))) is not None:
        label, order = form
        return label, [node.expressions[at] for at in order]
    return None


def is_time(type: str) -> bool:
    return type.lower() in _DATES


def in_windows(node: exp.Window, named: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    """A window and the named ones that it refers to, the innermost first."""
    chain: list[exp.Expr] = [node]
    seen: set[str] = set()
    while chain[0].args.get("alias") and (name := chain[0].alias.lower()) in named and name not in seen:
        seen.add(name)
        chain.insert(0, named[name])
    return chain


def by_rows(frame: str) -> bool:
    """Whether a frame may end between tied rows."""
    return frame.startswith("ROWS:") and frame != "ROWS:UNBOUNDED PRECEDING:UNBOUNDED FOLLOWING:"


def frame(spec: exp.Expr) -> str:
    def edge(which: str) -> str:
        at, side = spec.args.get(which), spec.args.get(f"{which}_side") or ""
        bound = at.sql(DIALECT) if isinstance(at, exp.Expr) else str(at or "CURRENT ROW")
        return f"{bound} {side}".strip().upper()

    return f"{str(spec.args.get('kind')).upper()}:{edge('start')}:{edge('end')}:{spec.args.get('exclude') or ''}"
