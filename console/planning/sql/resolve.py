"""Resolves the names in a checked tree to tables and columns; all unknown names are reported at once."""

import re

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from console.planning.sql.semantics import functions
from console.planning.sql.tree import DIALECT, Tables, Text, UnknownColumn, nearest, strict

_UNKNOWN = re.compile(r"(?:Unknown column|Cannot automatically join|Column): *'?\"?`?([^\s'\"`]+)")
_MAX_REPORTED = 50  # unknown columns reported of one query


def schema(tables: Tables) -> MappingSchema:
    """The schema that `qualified` resolves names against; build it once for many queries."""
    lowered: dict[str, object] = {
        name.lower(): {column.lower(): kind for column, kind in columns.items()} for name, columns in tables.items()
    }
    return MappingSchema(lowered, dialect=DIALECT, normalize=False)


def qualified(tree: exp.Query, text: Text, tables: Tables, known: MappingSchema) -> exp.Query | None:
    """Every table and column resolved, stars and aliases expanded, types inferred where they can be; or None."""
    if not _tables_known(tree, text, tables) or not _left_out_known(tree, text, tables):
        return None
    if not _generators_named(tree, text) or not _qualify_clear(tree, text, tables):
        return None
    _keep_case(tree)
    with strict():
        done = _qualify(tree, text, known, tables)
        if done is None or not _columns_known(done, text, tables):
            return None
        return annotate_types(done, schema=known, dialect=DIALECT)


def _keep_case(tree: exp.Query) -> None:
    """Mark the names that are data: fields of structs, which `to_json` writes, and keys of maps."""
    for struct in tree.find_all(exp.Struct):
        for member in struct.expressions:
            for key in ("this" if isinstance(member, exp.PropertyEQ) else "alias", "alias"):
                if isinstance(name := member.args.get(key), exp.Identifier):
                    member.set(key, name := name.copy())  # the parser gives a field the identifier of its column
                    name.meta["case_sensitive"] = True
    for node in tree.find_all(exp.ColumnDef, exp.Dot):
        if isinstance(name := node.this if isinstance(node, exp.ColumnDef) else node.expression, exp.Identifier):
            name.meta["case_sensitive"] = True
    for scope in traverse_scope(tree):
        for column in scope.columns:
            parts = column.parts
            for name in parts[2 if _visible_in_any_case(scope, parts[0].name) else 1 :]:
                name.meta["case_sensitive"] = True


def _visible_in_any_case(scope: Scope | None, name: str) -> bool:
    while scope is not None:
        if name.lower() in (source.lower() for source in scope.sources):
            return True
        scope = scope.parent
    return False


def _tables_known(tree: exp.Query, text: Text, tables: Tables) -> bool:
    names = {name.lower() for name in tables}
    good = True
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and source.name.lower() not in names:
                text.report("S107", f"there is no table {source.name}", source, nearest(source.name, tables))
                text.unknown[text.problems[-1]] = UnknownColumn("", (source.name.lower(),))
                good = False
    return good


def _left_out_known(tree: exp.Query, text: Text, tables: Tables) -> bool:
    """Whether every name in `* EXCEPT (…)` is a column: an unknown one would be ignored silently."""
    good = True
    for scope in traverse_scope(tree):
        stars = [star for part in getattr(scope.expression, "expressions", ()) for star in part.find_all(exp.Star)]
        columns = {name for source in scope.sources.values() for name in _outputs(source, tables)}
        for column in (column for star in stars for column in star.args.get("except_") or ()):
            of = column.args.get("table")
            if of is not None and not _visible_in_any_case(scope, of.name):
                text.report(
                    "S105", f"EXCEPT ({column.sql(DIALECT)}) leaves out a field: name the columns instead", column
                )
                good = False
            elif of is None and column.name.lower() not in columns and "*" not in columns:
                _unknown(text, column, column.name, tables, scope)
                good = False
    return good


def _generators_named(tree: exp.Query, text: Text) -> bool:
    """Whether generators name their columns: Spark's default names cannot be derived from the text."""
    parts = [part for select in tree.find_all(exp.Select) for part in select.expressions]
    bare = [part for part in parts if not isinstance(part, (exp.Alias, exp.Aliases)) and functions.generates(part)]
    for part in bare:
        text.report(
            "S105", f"{part.sql(DIALECT)} needs names for what it yields", part, "write `AS name` or `AS (one, other)`"
        )
    return not bare


def _qualify_clear(tree: exp.Query, text: Text, tables: Tables) -> bool:
    """Whether the names in each QUALIFY resolve as in Spark, which prefers the source's column to an output."""
    before = len(text.problems)
    for scope in traverse_scope(tree):
        if (condition := scope.expression.args.get("qualify")) is None:
            continue
        shown = {part.alias.lower(): part.this for part in scope.expression.expressions if isinstance(part, exp.Alias)}
        columns = {name for source in scope.sources.values() for name in _outputs(source, tables)}
        renamed = {name for name, of in shown.items() if not isinstance(of, exp.Column) or of.name.lower() != name}
        named = [c for c in condition.find_all(exp.Column) if not c.table and c.name.lower() in renamed]
        for column in named:
            if column.name.lower() in columns or "*" in columns:
                text.report(
                    "S109", f"{column.name} in QUALIFY is ambiguous: a source has it, and the SELECT names a column so",
                    column, "name the source, or give the output another name",
                )  # fmt: skip
        if any(functions.aggregates(part) for part in (condition.this, *(shown[c.name.lower()] for c in named))):
            text.report("S105", "QUALIFY over an aggregate is not allowed", condition, "aggregate in a subquery")
    return len(text.problems) == before


def _qualify(tree: exp.Query, text: Text, known: MappingSchema, tables: Tables) -> exp.Query | None:
    wrong = 0
    for _ in range(_MAX_REPORTED):
        try:
            done = qualify(tree.copy(), schema=known, dialect=DIALECT, validate_qualify_columns=False)
        except OptimizeError as error:
            unknown = _UNKNOWN.search(str(error))
            blamed = [c for c in tree.find_all(exp.Column) if unknown and c.name.lower() == unknown.group(1).lower()]
            if not blamed:
                text.report_query("S108", str(error).splitlines()[0])
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
                text.report("S108", f"{column.table}.{column.name}: no table here is called {column.table}", column)
                good = False
        shown = _outputs(scope, tables) if isinstance(scope.expression, exp.SetOperation) else set()
        for column in scope.unqualified_columns:
            if column.name.lower() in shown:  # ORDER BY of a set operation refers to its outputs
                continue
            holders = [alias for alias, source in scope.sources.items() if column.name in _outputs(source, tables)]
            if len(holders) > 1:
                text.report("S109", f"{column.name} is ambiguous: {' and '.join(holders)} have it", column)
            else:
                _unknown(text, column, column.name, tables, scope)
            good = False
    for star in tree.find_all(exp.Star):
        if isinstance(star.parent, (exp.Select, exp.Column)):
            text.report("S105", "* of a struct is not allowed: name its fields", star)
            good = False
        elif isinstance(star.parent, exp.Struct) and _reads_a_query(star):
            text.report(
                "S105", "struct(*) over a subquery is not allowed: name its columns", star
            )  # their case would be lost
            good = False
    return good


def _reads_a_query(node: exp.Expr) -> bool:
    """Whether the SELECT around a node reads anything but tables."""
    select = node.find_ancestor(exp.Select)
    ctes = {cte.alias.lower() for cte in select.root().find_all(exp.CTE)} if select else set()
    sources = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())] if select else []
    return any(not isinstance(one, exp.Table) or one.name.lower() in ctes for one in sources)


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
        names = sorted({source.name for source in sources if isinstance(source, exp.Table)})
    else:
        select = column.find_ancestor(exp.Select)
        names = sorted({t.name.lower() for t in select.find_all(exp.Table)} & set(tables)) if select else []
        near = {c for table in names for c in tables[table]}
    whose = f" in {' or '.join(names)}" if names else ""
    text.report("S108", f"there is no column {name}{whose}", column, nearest(name, near))
    text.unknown[text.problems[-1]] = UnknownColumn(name.lower(), tuple(names))
