"""Proof that a column is a function of columns in the live table, from the feeds' own expressions.

The live feed defines each stored column: its projection, cast included, over the source. Wherever that expression
occurs in a wanted one (equal by meaning, and not volatile), the stored column can replace it. If no source column
remains, the wanted column is exactly that function of the live table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from console.model.live import Feed, TableState
from console.model.schema import types
from console.planning.fingerprint import DesiredTable
from console.planning.sql.compile import NameScope
from console.planning.sql.relation import Relation, Value
from console.planning.sql.semantics import relation_of
from console.planning.sql.syntax.argument import INTEGERS
from console.planning.sql.syntax.flat import merged
from console.planning.sql.tree import DIALECT, cast, kind, name, render

_GIVES: dict[type[exp.Expr], str] = {
    exp.JSONExtractScalar: "string", exp.Upper: "string", exp.Lower: "string", exp.RegexpExtract: "string",
    exp.TsOrDsToDate: "date", exp.TimestampTrunc: "timestamp", exp.Length: "int",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proof:
    """given: column → SQL over the live table's logical columns; missing: column → the source column that it lacks."""

    given: dict[str, str]
    missing: dict[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """A stored column as the live table shows it: unchanged, or as a wider integer. stored: its type"""

    name: str
    stored: str
    widened: bool = False

    def value(self) -> exp.Expr:
        """What is stored, over the logical column."""
        column = exp.column(name(self.name))
        return cast(column, self.stored) if self.widened else column


@dataclass(frozen=True, slots=True)
class FeedQuery:
    """One feed's query as a plain SELECT with its subqueries dissolved."""

    feed: Feed
    tree: exp.Select
    known: NameScope

    def value(self, nodes: Sequence[exp.Expr]) -> tuple[list[Value], Relation]:
        """The values of expressions in place of its projections."""
        probe = self.tree.copy()
        probe.set("expressions", [exp.alias_(node.copy(), f"_{i}") for i, node in enumerate(nodes)])
        relation = relation_of(probe, self.known.relations)
        return [relation.columns[f"_{i}"] for i in range(len(nodes))], relation

    def aliases(self) -> dict[str, str]:
        return {table.alias_or_name.lower(): table.name for table in self.tree.find_all(exp.Table)}

    def projections(self) -> dict[str, exp.Expr]:
        return {part.alias_or_name.lower(): part.unalias() for part in self.tree.expressions}


def proven(
    wanted: DesiredTable,
    live: TableState,
    feeds: Iterable[Feed],
    columns: Iterable[str],
    *,
    now: NameScope,
    was: NameScope,
) -> Proof:
    """Express columns of a wanted table over the live one; every feed must yield the same expression.

    feeds     of the live table;  columns  of the wanted one, to be expressed
    now, was  the sources as wanted and as live
    """
    columns = list(columns)
    old = [flat_query(feed, was) for feed in feeds]
    pairs = [(flat_query(feed, now), _partner(feed, old)) for feed in wanted.feeds]
    if wanted.table.kind != "append" or not pairs or any(a is None or b is None for a, b in pairs):
        return Proof({}, dict.fromkeys(columns, ""))
    logical = logical_columns(live)
    given: dict[str, str] = {}
    missing: dict[str, str] = {}
    each = [expressed(a, kept_values(b, live, logical), columns) for a, b in pairs if a is not None and b is not None]
    for column in columns:
        expressions = {given_by_feed.get(column, "") for given_by_feed, _ in each}
        lacking = sorted({lacks[column] for _, lacks in each if column in lacks})
        if len(expressions) == 1 and (only := expressions.pop()):
            given[column] = only
        else:
            missing[column] = lacking[0] if lacking else "its feeds compute it in different ways"
    return Proof(given, missing)


def flat_query(feed: Feed, known: NameScope) -> FeedQuery | None:
    tree = sqlglot.parse_one(feed.sql, read=DIALECT)
    flat = merged(tree) or tree
    unusual = ("group", "distinct", "limit", "offset", "qualify", "having", "laterals")
    if not isinstance(flat, exp.Select) or any(flat.args.get(key) for key in unusual):
        return None
    return FeedQuery(feed, flat, known)


def _partner(feed: Feed, old: list[FeedQuery | None]) -> FeedQuery | None:
    """The live feed whose rows these are."""
    named = [query for query in old if query and query.feed.materialization == feed.materialization]
    partner = named[0] if named else old[0] if len(old) == 1 else None
    return partner if partner is not None and partner.feed.source == feed.source else None


def logical_columns(live: TableState) -> dict[str, Shown]:
    """Stored column → the logical one that shows its value; without columns that were carried."""
    stored = types(live.version.columns)
    logical: dict[str, Shown] = {}
    for part in sqlglot.parse_one(live.read, read=DIALECT).expressions:
        column = part.unalias()
        widened = isinstance(column, exp.Cast) and isinstance(column.this, exp.Column)
        inner = column.this if widened else column
        if not isinstance(inner, exp.Column) or inner.name not in stored or part.alias_or_name in live.carried:
            continue
        type_ = kind(stored[inner.name])
        if not widened or _is_wider(kind(column.to.sql(DIALECT)), type_):
            logical[inner.name.lower()] = Shown(part.alias_or_name, type_, widened)
    return logical


def _is_wider(type: str, other: str) -> bool:
    """Whether each number of one integer type is the same number in another."""
    return {type, other} <= {*INTEGERS} and INTEGERS.index(other) < INTEGERS.index(type)


def kept_values(query: FeedQuery, live: TableState, logical: Mapping[str, Shown]) -> dict[str, exp.Expr]:
    """Meaning of an expression → the live table's expression for it: a logical column, or a cast of one."""
    nodes: list[exp.Expr] = []
    given: list[exp.Expr] = []
    for stored, node in query.projections().items():
        if stored not in logical or node.find(exp.Column) is None:
            continue
        shown, type_ = logical[stored].value(), logical[stored].stored
        nodes.append(node)
        given.append(shown)
        if isinstance(node, exp.Cast) and certain_type(node.this, query) == type_:
            nodes.append(node.this)  # the feed's own cast to the declared type changed nothing
            given.append(shown)
        if narrow := _widened(node, type_, query):
            nodes.append(_uncast(node, type_))
            given.append(cast(shown.copy(), narrow))
        for wider in _wider_casts(node, type_):
            nodes.append(wider)
            given.append(cast(shown.copy(), kind(wider.to.sql(DIALECT))))
    values, _ = query.value(nodes)
    by_value: dict[str, exp.Expr] = {}
    for value, made in zip(values, given, strict=True):
        if not value.volatile:
            by_value.setdefault(value.hash, made)
    return by_value


def _uncast(node: exp.Expr, type: str) -> exp.Expr:
    while isinstance(node, exp.Cast) and not node.args.get("safe") and kind(node.to.sql(DIALECT)) == type:
        node = node.this.unnest()
    return node


def _widened(node: exp.Expr, type: str, query: FeedQuery) -> str:
    """The narrower integer type of a value that is stored as a wider one and is the same number in both, "" for any other."""
    inner = _uncast(node, type)
    narrow = certain_type(inner, query) if inner is not node else ""
    return narrow if _is_wider(type, narrow) else ""


def _wider_casts(node: exp.Expr, type: str) -> Iterator[exp.Cast]:
    """Casts of the same value to wider integers: a value that fits the narrow one is the same number in each, whatever it is cast
    from, and one that does not has stopped its batch. try_cast stores NULL for it instead.
    """
    inner = _uncast(node, type)
    if inner is node or type not in INTEGERS:
        return
    for wider in INTEGERS[INTEGERS.index(type) + 1 :]:
        made = cast(inner.copy(), wider)
        assert isinstance(made, exp.Cast)
        yield made


def certain_type(node: exp.Expr, query: FeedQuery) -> str:
    """The type of an expression regardless of its operands, "" if that is not certain."""
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return kind(node.to.sql(DIALECT))
    if isinstance(node, exp.Column):
        declared = query.known.tables.get(query.aliases().get(node.table.lower(), ""), {})
        return next((kind(type_) for column, type_ in declared.items() if column.lower() == node.name.lower()), "")
    return _GIVES.get(type(node), "")


def expressed(
    query: FeedQuery, kept: Mapping[str, exp.Expr], columns: list[str]
) -> tuple[dict[str, str], dict[str, str]]:
    given: dict[str, str] = {}
    missing: dict[str, str] = {}
    projections = query.projections()
    for column in columns:
        node = projections[column.lower()].copy()
        if node.find(exp.Query, exp.AggFunc, exp.Window, exp.UDTF, exp.Explode) is not None:
            missing[column] = "it is not a plain expression"
            continue
        whole = query.value([node])[0][0]
        if whole.volatile:
            missing[column] = "two computations of it differ"
            continue
        made, lacks = replaced(query, node, kept)
        if lacks:
            missing[column] = lacks
        else:
            given[column] = render(made)
    return given, missing


def replaced(query: FeedQuery, node: exp.Expr, kept: Mapping[str, exp.Expr]) -> tuple[exp.Expr, str]:
    """The expression over the live table's columns, and the first column of the source that remains in it."""
    parts = [part for part in node.walk() if isinstance(part, exp.Condition) and part.find(exp.Column) is not None]
    values = dict(zip(map(id, parts), query.value(parts)[0], strict=True))
    mine: set[int] = set()

    def stored(part: exp.Expr) -> exp.Expr:
        if id(part) not in values or (shown := kept.get(values[id(part)].hash)) is None:
            return part
        made = shown.copy()
        mine.update(map(id, made.walk()))
        return made

    made = node.transform(stored, copy=False)
    left = [column for column in made.find_all(exp.Column) if id(column) not in mine]
    return made, f"{query.aliases().get(left[0].table.lower(), left[0].table)}.{left[0].name}" if left else ""
