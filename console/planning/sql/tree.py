"""Text to a checked, qualified tree: parse, allow, substitute variables, resolve tables and columns.

Positions in messages are those of the operator's file. Unquoted and quoted names are compared without case, as Spark
compares them.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from console.errors import Problem
from console.model.receipt import LEDGER, LEDGER_VIEW
from console.planning.sql import allow
from console.planning.sql.spelling import quotes
from console.planning.sql.spelling.literal import literal
from console.planning.sql.spelling.written import AsRead

DIALECT = "spark"
Tables = Mapping[str, Mapping[str, str]]  # table → column → Spark type, as declared
_FIRST = {"SELECT", "WITH", "FROM", "("}
_UNKNOWN = re.compile(r"(?:Unknown column|Cannot automatically join|Column): *'?\"?`?([^\s'\"`]+)")
_PATIENCE = 50  # unknown columns reported of one query


@dataclass(slots=True)
class Text:
    """One query as written, and what was found wrong with it.

    where  `file:line:column` of its first line, or ""
    node   its logical name
    own    whether it may read the region's own `_console` tables
    """

    sql: str
    where: str = ""
    node: str = ""
    problems: list[Problem] = field(default_factory=list)
    own: bool = False

    def __post_init__(self) -> None:
        self.sql = quotes.single(self.sql)

    def say(self, code: str, message: str, at: exp.Expr | None = None, hint: str = "") -> None:
        """Note a problem; `at` is the node to blame."""
        offset = start(at) if at is not None else None
        self.blame(code, message, offset, hint)

    def blame(self, code: str, message: str, offset: int | None = None, hint: str = "") -> None:
        place = self._place(offset)
        if not self.where and place:
            message = f"{message} (at {place})"
        self.problems.append(Problem(code, message, self._file(offset), hint, node=self.node))

    def _place(self, offset: int | None) -> str:
        if offset is None:
            return ""
        line, column = _line_column(self.sql, offset)
        return f"{line}:{column}"

    def _file(self, offset: int | None) -> str:
        parts = self.where.rsplit(":", 2)
        if len(parts) < 3 or not (parts[1].isdigit() and parts[2].isdigit()):
            return self.where
        line, column = _line_column(self.sql, offset or 0)
        first = int(parts[1])
        return f"{parts[0]}:{first + line - 1}:{column + (int(parts[2]) - 1 if line == 1 else 0)}"


def start(node: exp.Expr) -> int | None:
    """Where a node begins in its text, by the leftmost name or literal in it."""
    return min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=None)


def _line_column(sql: str, offset: int) -> tuple[int, int]:
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def parse(text: Text) -> exp.Query | None:
    """One SELECT, allowed in every node; else None and the problems are in `text`."""
    try:
        return _parse(text)
    except RecursionError:
        text.blame("S101", "the query is nested too deeply", hint=f"at most {allow.DEPTH} levels")
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        first = details[0]
        line, column = first.get("line"), first.get("col")
        offset = None
        if line and column:
            lines = text.sql.split("\n")
            offset = sum(len(row) + 1 for row in lines[: line - 1]) + max(column - len(first.get("highlight") or ""), 0)
        what = (first.get("description") or str(error)).splitlines()[0].rstrip(".")
        near = f" near {first['highlight']!r}" if first.get("highlight") else ""
        text.blame("S102", f"the query of {text.node or 'this call'} cannot be read: {what}{near}", offset)
    return None


def _parse(text: Text) -> exp.Query | None:
    if len(text.sql.encode()) > allow.BYTES:
        text.blame("S101", "the query is longer than 64 KiB", hint="split it into several materializations")
        return None
    # ahead of the parser, which needs some twenty frames a level
    if (deep := _deepest(text.sql)) is not None:
        text.blame("S101", "the query is nested too deeply", deep, hint=f"at most {allow.DEPTH} levels")
        return None
    tokens = sqlglot.Dialect.get_or_raise(DIALECT).tokenize(text.sql)
    if not tokens:
        text.blame("S102", f"the query of {text.node or 'this call'} is empty")
        return None
    if tokens[0].text.upper() not in _FIRST:
        text.blame("S104", f"only SELECT is allowed, not {tokens[0].text.upper()}", tokens[0].start)
        return None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    # ahead of the parser, which writes to the log about statements it does not know
    if second := next((token for token in tokens if token.token_type == TokenType.SEMICOLON), None):
        text.blame("S103", "more than one statement", second.start, hint="one query a file, without `;`")
        return None
    tree = next((found for found in sqlglot.parse(text.sql, read=DIALECT) if found is not None), None)
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        text.blame("S104", f"only SELECT is allowed, not {type(tree).__name__.upper()}", tokens[0].start)
        return None
    if allow.depth(tree) > allow.DEPTH:
        text.say("S101", "the query is nested too deeply", tree, hint=f"at most {allow.DEPTH} levels")
        return None
    for table in tree.find_all(exp.Table) if text.own else ():
        _own(table)
    refused = list(allow.refusals(tree))
    for node, what, why in refused:
        text.say("S105", f"{what} is not allowed{f': {why}' if why else ''}", node, hint="docs/codes.md lists what is")
    return None if refused else tree


def _own(table: exp.Table) -> None:
    """Name one of the region's own tables as its view is: `_console.ops` is `_console_ops`, for a view's name has no dot."""
    if table.name.lower() in LEDGER and table.db.lower() == LEDGER_VIEW[:-1] and not table.catalog:
        if not table.alias:
            table.set("alias", exp.TableAlias(this=name(table.name)))
        table.set("this", name(LEDGER_VIEW + table.name.lower()))
        table.set("db", None)


def _deepest(sql: str) -> int | None:
    depth = 0
    for offset, char in enumerate(sql):
        if char in "([":
            depth += 1
            if depth > allow.DEPTH:
                return offset
        elif char in ")]":
            depth = max(depth - 1, 0)
    return None


def substitute(tree: exp.Query, text: Text, variables: Mapping[str, str], parameters: Iterable[str]) -> set[str]:
    """Put variables in as literals, leave declared parameters. Returns the parameters that occur."""
    declared, used = set(parameters), set()
    for place in list(tree.find_all(exp.Placeholder)):
        name = place.name
        if name in declared:
            used.add(name)
        elif name in variables:
            place.replace(literal(variables[name]))
        else:
            found = re.search(rf":{re.escape(name)}\b", text.sql)  # a placeholder carries no position
            hint = _nearest(name, {*declared, *variables})
            text.blame("S111", f":{name} is neither a parameter nor a variable", found and found.start(), hint)
    return used


def schema(tables: Tables) -> MappingSchema:
    """What `qualified` resolves names against; build it once for many queries."""
    lowered: dict[str, object] = {
        name.lower(): {column.lower(): kind for column, kind in columns.items()} for name, columns in tables.items()
    }
    return MappingSchema(lowered, dialect=DIALECT, normalize=False)


def qualified(tree: exp.Query, text: Text, tables: Tables, known: MappingSchema) -> exp.Query | None:
    """Every table and column resolved, stars and aliases expanded, types inferred where they can be; or None."""
    if not _tables_known(tree, text, tables):
        return None
    for struct in tree.find_all(exp.Struct):  # a field's name is data: `to_json` writes it
        for member in struct.expressions:
            for name in (member.this if isinstance(member, exp.PropertyEQ) else None, member.args.get("alias")):
                if isinstance(name, exp.Identifier):
                    name.meta["case_sensitive"] = True
    done = _qualify(tree, text, known, tables)
    if done is None or not _columns_known(done, text, tables):
        return None
    return annotate_types(done, schema=known, dialect=DIALECT)


def _tables_known(tree: exp.Query, text: Text, tables: Tables) -> bool:
    names = {name.lower() for name in tables}
    good = True
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and source.name.lower() not in names:
                text.say("S107", f"there is no table {source.name}", source, _nearest(source.name, tables))
                good = False
    return good


def _qualify(tree: exp.Query, text: Text, known: MappingSchema, tables: Tables) -> exp.Query | None:
    wrong = 0
    for _ in range(_PATIENCE):
        try:
            done = qualify(tree.copy(), schema=known, dialect=DIALECT, validate_qualify_columns=False)
        except OptimizeError as error:
            found = _UNKNOWN.search(str(error))
            blamed = [c for c in tree.find_all(exp.Column) if found and c.name.lower() == found.group(1).lower()]
            if not blamed:
                text.blame("S108", str(error).splitlines()[0])
                return None
            for column in blamed:
                _unknown(text, column, column.name, tables)
                column.replace(exp.Null())
            wrong += len(blamed)
        else:
            if wrong:
                _columns_known(done, text, tables)
            return None if wrong else done
    return None


def _columns_known(tree: exp.Query, text: Text, tables: Tables) -> bool:
    good = True
    for scope in traverse_scope(tree):
        for column in scope.columns:
            if column.table and not _visible(scope, column.table):
                text.say("S108", f"{column.table}.{column.name}: no table here is called {column.table}", column)
                good = False
        for column in scope.unqualified_columns:
            holders = [alias for alias, source in scope.sources.items() if column.name in _outputs(source, tables)]
            if len(holders) > 1:
                text.say("S109", f"{column.name} is ambiguous: {' and '.join(holders)} have it", column)
            else:
                _unknown(text, column, column.name, tables, scope)
            good = False
    for star in tree.find_all(exp.Star):
        if isinstance(star.parent, (exp.Select, exp.Column)):
            text.say("S105", "* of a struct is not allowed: name its fields", star)
            good = False
    return good


def _visible(scope: Scope | None, name: str) -> bool:
    while scope is not None:
        if name in scope.sources:
            return True
        scope = scope.parent
    return False


def _outputs(source: exp.Expr | Scope, tables: Tables) -> set[str]:
    if isinstance(source, Scope):
        return {name.lower() for name in getattr(source.expression, "named_selects", ())}
    return {column.lower() for column in tables.get(source.name, {})}


def _unknown(text: Text, column: exp.Column, name: str, tables: Tables, scope: Scope | None = None) -> None:
    if scope is not None:
        sources = [source for source in scope.sources.values()]
        near = {c for source in sources for c in _outputs(source, tables)}
        held = sorted({source.name for source in sources if isinstance(source, exp.Table)})
    else:
        select = column.find_ancestor(exp.Select)
        held = sorted({t.name.lower() for t in select.find_all(exp.Table)} & set(tables)) if select else []
        near = {c for table in held for c in tables[table]}
    whose = f" in {' or '.join(held)}" if held else ""
    text.say("S108", f"there is no column {name}{whose}", column, _nearest(name, near))


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name.lower(), sorted({k.lower() for k in known}), 1, 0.6)
    return f"did you mean {near[0]}?" if near else ""


@lru_cache(maxsize=4096)
def kind(name: str) -> str:
    """A Spark type in one canonical spelling: `decimal(10, 2)` and `DECIMAL(10,2)` are `decimal(10,2)`.

    raises  ValueError where it is no type
    """
    try:
        spelled: str = exp.DataType.build(name, dialect=DIALECT).sql(DIALECT).lower().replace(" ", "")
    except SqlglotError:
        raise ValueError(f"{name} is no Spark type") from None
    return {"decimal": "decimal(10,0)"}.get(spelled, spelled)


def inferred(node: exp.Expr) -> str:
    """The type sqlglot gives an expression, "" where it does not know."""
    if node.type is None or node.type.is_type(exp.DataType.Type.UNKNOWN):
        return ""
    return kind(node.type.sql(DIALECT))


def cast(node: exp.Expr, type: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(type, dialect=DIALECT))


def name(text: str) -> exp.Identifier:
    """A column's or table's name as Spark must quote it."""
    return exp.to_identifier(text, quoted=True)


def render(tree: exp.Expr) -> str:
    """Plain Spark SQL, comments left out; what sqlglot cannot write for Spark raises."""
    text: str = tree.sql(AsRead, comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    return text


def sources(tree: exp.Query) -> Iterator[tuple[str, exp.Table]]:
    """Physical tables the tree reads, with the node of each use; CTE names are no tables."""
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and id(source) not in seen:
                seen.add(id(source))
                yield source.name.lower(), source
