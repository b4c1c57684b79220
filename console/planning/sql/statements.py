"""The tables that statements read and write, and the lineage of each column."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from console.planning.sql.relation import Relation, Value, physical, unknown
from console.planning.sql.semantics import REPEATED, Unclear, query_in
from console.planning.sql.semantics.relations import read, source
from console.planning.sql.semantics.scope import Evaluation, Scope
from console.planning.sql.semantics.values import Values

Pair = tuple[tuple[str, str], tuple[str, str]]
# statement kinds with lineage; all others are ignored
_FIRST = ("SELECT", "WITH", "FROM", "(", "VALUES", "INSERT", "CREATE", "REPLACE", "MERGE", "UPDATE", "COPY", "ALTER")
# moves partitions or all rows from one table to another
_SWAPS = [
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"ALTER\s+TABLE\s+(?P<to>\S+)\s+SWAP\s+WITH\s+(?P<of>\S+)",
        r"ALTER\s+TABLE\s+(?P<to>\S+)\s+EXCHANGE\s+PARTITION\s*\(.*\)\s*WITH\s+TABLE\s+(?P<of>\S+)",
        r"SELECT\s+swap_partitions_between_tables\s*\(\s*'(?P<of>[^']+)',.*'(?P<to>[^']+)'\s*\)",
    )
]
_FILES = ("parquet", "csv", "json", "orc", "text", "delta", "avro", "xml", "binaryfile")


def table_name(table: exp.Expr) -> str:
    """A table's name as written, in lower case; a path of files unchanged."""
    if isinstance(table, exp.Directory):
        return str(table.this.name)
    parts = [part.name for part in table.parts] if isinstance(table, exp.Table) else [table.name]
    return parts[1] if len(parts) == 2 and parts[0].lower() in _FILES else ".".join(parts).lower()


def statements(sql: str, dialect: str) -> Iterator[exp.Expr]:
    """The statements of a script that can be parsed, in the dialect that is named or else in Spark's."""
    known = dialect if dialect in ("", *sqlglot.Dialect.classes) else "spark"
    for text in _split(sql, known):
        # before the parser, which has no such statement in most dialects
        if (swap := next(filter(None, (pattern.fullmatch(text) for pattern in _SWAPS)), None)) is not None:
            yield exp.insert(exp.select("*").from_(swap["of"], dialect=known), swap["to"], dialect=known)
            continue
        for attempt in dict.fromkeys((known, "spark")):
            try:
                tree = sqlglot.parse_one(text, read=attempt)
            except (SqlglotError, RecursionError):
                continue
            yield tree
            break


def _split(sql: str, dialect: str) -> list[str]:
    try:
        tokens = sqlglot.Dialect.get_or_raise(dialect).tokenize(sql)
    except SqlglotError:
        return []
    texts, first = [], 0
    for at, token in enumerate(tokens):
        if token.token_type == TokenType.SEMICOLON or at == len(tokens) - 1:
            last = at if token.token_type == TokenType.SEMICOLON else at + 1
            # before the parser, which warns about statements that it does not know
            if first < last and tokens[first].text.upper() in _FIRST:
                texts.append(sql[tokens[first].start : tokens[last - 1].end + 1])
            first = at + 1
    return texts


def tables_read(node: exp.Expr, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    """Physical tables below a node, with CTEs resolved by name and scope."""
    with_ = node.args.get("with_")
    for cte in with_.expressions if with_ else ():
        own = frozenset({cte.alias.lower()}) if with_ is not None and with_.args.get("recursive") else frozenset()
        yield from tables_read(cte.this, hidden | own)
        hidden |= {cte.alias.lower()}
    if isinstance(node, exp.Table):
        name = table_name(node)
        if name not in hidden and isinstance(node.this, exp.Identifier):
            yield name
    for key, value in node.args.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Expr) and key not in ("with_", "hint", "into"):
                yield from tables_read(item, hidden)


def _target(written: exp.Expr) -> str:
    """The table that a statement writes, which may be given with a list of columns."""
    return table_name(written.this if isinstance(written, exp.Schema) else written)


class Flow:
    """Lineage over successive statements: a table created by one is known to the next."""

    def __init__(self, schema: Mapping[str, Iterable[str]]) -> None:
        self.sources: list[str] = []
        self.targets: list[str] = []
        self.pairs: set[Pair] = set()
        self.columns = {name.lower(): [column.lower() for column in columns] for name, columns in schema.items()}
        self.relations = {
            name: physical(name, "", {column: column for column in columns}) for name, columns in self.columns.items()
        }

    def follow(self, tree: exp.Expr) -> None:
        """raises Unclear if a name in the statement is unknown; its tables are recorded anyway"""
        match tree:
            case exp.Query() | exp.Values():
                self._select(tree)
            case exp.Insert() | exp.Create() if not (
                isinstance(tree, exp.Create) and tree.kind not in ("TABLE", "VIEW")
            ):
                self._write(tree)
            case exp.Copy():
                self._copy(tree)
            case exp.Merge():
                self._merge(tree)
            case exp.Update():
                self._update(tree)

    def _note(self, sources: Iterable[str], target: str = "") -> None:
        self.sources += [name for name in sources if name not in self.sources]
        if target and target not in self.targets:
            self.targets.append(target)

    def _scope(self) -> Scope:
        return Scope(run=Evaluation(tables=dict(self.relations), strict=False, query=query_in, lenient=True), ctes={})

    def _select(self, tree: exp.Expr) -> None:
        into = tree.find(exp.Into)
        self._note(tables_read(tree), table_name(into.this) if into else "")
        if into:
            select = into.parent
            assert isinstance(select, exp.Select)
            select.set("into", None)
            self._fill(table_name(into.this), [], self._evaluated(tree))

    def _write(self, tree: exp.Expr) -> None:
        """INSERT, CREATE TABLE and CREATE VIEW."""
        written = tree.this
        columns = [part.name.lower() for part in written.expressions] if isinstance(written, exp.Schema) else []
        target, body = _target(written), tree.args.get("expression")
        like = [one.this for one in tree.find_all(exp.LikeProperty)] + [one.this for one in tree.find_all(exp.Clone)]
        self._note([table_name(one) for one in like], target)
        if not isinstance(body, exp.Expr):
            return
        if isinstance(body, (exp.Subquery, exp.Query)) and (with_ := tree.args.get("with_")):
            body.set("with_", with_.pop())
        self._note(tables_read(body), target)
        fixed = {part.this.name.lower() for one in tree.find_all(exp.Partition) for part in one.find_all(exp.EQ)}
        if isinstance(tree, exp.Insert) and not columns:
            columns = [name for name in self.columns.get(target, []) if name not in fixed]
        self._fill(target, columns, self._evaluated(body))

    def _evaluated(self, tree: exp.Expr) -> Relation:
        return query_in(tree, self._scope())

    def _fill(self, target: str, columns: list[str], relation: Relation) -> None:
        """Columns by position, or by the query's own names if the target's are unknown."""
        given = [(name.rstrip(REPEATED), value) for name, value in relation.columns.items()]
        named = columns if columns and not relation.rest else [name for name, _ in given]
        pairs = [(name, value) for name, (_, value) in zip(named, given, strict=False)]
        for rest in relation.rest:
            pairs.append(("*", rest.value))
        self._pairs(target, pairs)
        if target not in self.columns:
            rest_columns = unknown(target).rest if relation.rest else ()
            known = dict(pairs) if not relation.rest else {}
            self.relations[target] = replace(unknown(target), columns=known, rest=rest_columns)

    def _pairs(self, target: str, columns: Iterable[tuple[str, Value]]) -> None:
        self.pairs |= {(of, (target, name)) for name, value in columns for of in value.reads}

    def _copy(self, tree: exp.Expr) -> None:
        """COPY … FROM files, and TO them."""
        files = [part.name for part in tree.args.get("files") or ()]
        if tree.args.get("kind"):
            self._note(files, _target(tree.this))
        else:
            self._note(tables_read(tree.this))
            for file in files:
                self._note((), file)

    def _merge(self, tree: exp.Expr) -> None:
        target = table_name(tree.this)
        self._note(tables_read(tree.args["using"]), target)
        scope = self._scope()
        scope.sources = {**source(tree.this, scope).views, **source(tree.args["using"], scope).views}
        values = Values(scope=scope)
        for when in tree.args["whens"].expressions:
            then = when.args.get("then")
            if isinstance(then, exp.Update):
                self._assigned(target, then.expressions, values)
            elif isinstance(then, exp.Insert) and isinstance(then.expression, exp.Tuple):
                given = then.this.expressions if then.this is not None else ()
                names = [part.name.lower() for part in given] or self.columns.get(target, [])
                parts = [values.value(part) for part in then.expression.expressions]
                self._pairs(target, zip(names, parts, strict=False))

    def _update(self, tree: exp.Expr) -> None:
        target, from_ = table_name(tree.this), tree.args.get("from_")
        hidden = frozenset(cte.alias.lower() for cte in tree.find_all(exp.CTE))
        with_ = tree.args.get("with_")
        beside = tree.this.args.get("joins") or ()
        parts = [p for p in (with_, from_, *beside, *tree.expressions, tree.args.get("where")) if p is not None]
        self._note((name for part in parts for name in tables_read(part, hidden)), target)
        scope = self._scope()
        if with_:
            select = exp.select("*").from_("nothing")
            select.set("with_", with_)
            scope.ctes = {cte.alias.lower(): query_in(cte.this, scope.beside()) for cte in with_.expressions}
        scope.sources = dict(source(tree.this, scope).views)
        if from_ is not None:
            scope.sources |= read(from_.this, tree.args.get("joins") or (), scope).views
        self._assigned(target, tree.expressions, Values(scope=scope))

    def _assigned(self, target: str, parts: Iterable[exp.Expr], values: Values) -> None:
        for part in parts:
            if isinstance(part, exp.EQ):
                self._pairs(target, [(part.this.name.lower(), values.value(part.expression))])


__all__ = ["Flow", "Unclear", "statements", "table_name", "tables_read"]
