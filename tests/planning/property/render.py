"""Queries as text, in many styles: the same query in two styles has one meaning."""

import random
import re
from dataclasses import dataclass, field

from tests.planning.property.model import Expr, From, Query, Raw, Select, SetOp

_WORDS = re.compile(
    r"\b(SELECT|FROM|WHERE|AND|OR|NOT|JOIN|LEFT|INNER|ON|GROUP|BY|AS|WITH|CASE|WHEN|THEN|ELSE|END|IN|IS|NULL|BETWEEN|"
    r"HAVING|UNION|ALL|DISTINCT|LIKE|OVER|PARTITION|ORDER|CAST)\b"
)
_STRINGS = re.compile(r"('(?:[^'\\]|\\.)*'|`[^`]*`)")


@dataclass(frozen=True)
class Style:
    """How one writer writes.

    prefix     what aliases begin with;  ctes  subqueries in FROM are named in WITH, `nested` inside one another
    qualified  columns carry their table's alias;  shout  names in capitals;  quoted  names in backticks
    """

    prefix: str = "s"
    cte: str = "step"
    ctes: bool = False
    nested: bool = False
    qualified: bool = True
    lower: bool = False
    shout: bool = False
    quoted: bool = False
    comments: bool = False
    breaks: bool = False
    parens: bool = False
    as_: bool = True
    seed: int = 0


@dataclass
class _Writer:
    style: Style
    ctes: list[tuple[str, str]] = field(default_factory=list)
    rng: random.Random = field(default_factory=random.Random)

    def name(self, name: str) -> str:
        shown = name.upper() if self.style.shout and self.rng.random() < 0.5 else name
        return f"`{shown}`" if self.style.quoted and self.rng.random() < 0.5 else shown

    def alias(self, alias: str) -> str:
        return self.style.prefix + alias.removeprefix("s")

    def expr(self, expr: Expr, scope: Select) -> str:
        if not expr.form:
            holders = [s for s in scope.sources if any(name == expr.name for name, _ in s.columns)]
            bare = not self.style.qualified and len(holders) == 1 and not scope.lateral
            return self.name(expr.name) if bare else f"{self.name(self.alias(expr.source))}.{self.name(expr.name)}"
        changed = expr.form.format(*(self.expr(part, scope) for part in expr.parts)).replace("TYPE", expr.type)
        return f"({changed})" if self.style.parens and self.rng.random() < 0.2 else changed

    def source(self, source: From) -> str:
        alias = self.alias(source.alias)
        if isinstance(source.what, str):
            what = self.name(source.what)
        elif self.style.ctes and not isinstance(source.what, Raw):
            what = f"{self.style.cte}_{source.alias}"
            inner = _Writer(self.style, rng=self.rng).whole if self.style.nested else self.query
            self.ctes.append((what, inner(source.what)))
        else:
            what = f"({self.query(source.what)})"
        return f"{what}{' AS' if self.style.as_ else ''} {self.name(alias)}"

    def whole(self, query: Query) -> str:
        body = self.query(query)
        named = ", ".join(f"{name} AS ({text})" for name, text in self.ctes)
        return f"WITH {named} {body}" if named else body

    def query(self, query: Query) -> str:
        match query:
            case Raw():
                return query.text
            case SetOp():
                left, right = (
                    f"({self.query(side)})"
                    if isinstance(side, SetOp) or getattr(side, "tail", False)
                    else self.query(side)
                    for side in (query.left, query.right)
                )
                return f"{left} {query.op} {right}{query.tail}"
        return self.select(query)

    def select(self, query: Select) -> str:
        items = ", ".join(self.item(name, expr, query) for name, expr in query.items)
        text = f"SELECT {'DISTINCT ' if query.distinct else ''}{'*' if query.star else items}"
        for i, source in enumerate(query.sources):
            text += f" {source.join or 'JOIN' if i else 'FROM'} {self.source(source)}"
            if source.using:
                text += f" USING ({', '.join(source.using)})"
            elif source.on:
                text += f" ON {self.all(source.on, query)}"
        text += f" {query.lateral}" if query.lateral else ""
        text += f" WHERE {self.all(query.where, query)}" if query.where else ""
        text += self.grouped(query)
        text += f" HAVING {self.all(query.having, query)}" if query.having else ""
        text += f" QUALIFY {self.expr(query.qualify, query)}" if query.qualify else ""
        return text + query.tail

    def item(self, name: str, expr: Expr, query: Select) -> str:
        message = self.expr(expr, query)
        if not expr.form and expr.name == name and self.style.prefix == "s":
            return message
        return f"{message}{' AS' if self.style.as_ else ''} {self.name(name)}"

    def grouped(self, query: Select) -> str:
        keys = [(i, expr) for i, (_, expr) in enumerate(query.items, 1) if not expr.aggregate]
        match query.group:
            case "all":
                return " GROUP BY ALL"
            case "ordinals" if keys:
                return f" GROUP BY {', '.join(str(i) for i, _ in keys)}"
            case "names" if keys:
                return f" GROUP BY {', '.join(self.expr(expr, query) for _, expr in keys)}"
        return ""

    def all(self, parts: tuple[Expr, ...], query: Select) -> str:
        return " AND ".join(self.expr(part, query) for part in parts)


def write(query: Query, style: Style | None = None) -> str:
    """The query's text."""
    style = style or Style()
    writer = _Writer(style, rng=random.Random(style.seed))
    return _dressed(writer.whole(query), style, writer.rng)


def _dressed(text: str, style: Style, rng: random.Random) -> str:
    """Case of keywords, line breaks and comments; strings and quoted names are left as they are."""
    if not (style.lower or style.comments or style.breaks):
        return text
    parts = _STRINGS.split(text)
    for i in range(0, len(parts), 2):
        if style.lower:
            parts[i] = _WORDS.sub(lambda result: result[0].lower(), parts[i])
        if style.breaks:
            parts[i] = re.sub(r" ", lambda _: rng.choice([" ", " ", "\n  ", "  ", "\t"]), parts[i])
        if style.comments:
            note = rng.choice(["/* as agreed */ ", "-- ; SELECT 'x'\n", "/* a, b */ "])
            parts[i] = re.sub(r", ", lambda _, n=note: f", {n}" if rng.random() < 0.3 else ", ", parts[i])
    return "".join(parts)
