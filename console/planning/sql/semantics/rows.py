"""Evaluates queries to relations: SELECT, set operations, CTEs, clause by clause in the order of their evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from console.planning.sql.relation import Relation, Rest, Value, mix
from console.planning.sql.semantics import branches, functions
from console.planning.sql.semantics.grouping import GroupingSets, grouping
from console.planning.sql.semantics.relations import From, generated, generator, read, renamed, source, yielded
from console.planning.sql.semantics.rewrites import outer, simpler
from console.planning.sql.semantics.scope import Evaluation, Scope, Unclear
from console.planning.sql.semantics.set_ops import alone, limited, united, without_repeats
from console.planning.sql.semantics.values import Values
from console.planning.sql.tree import DIALECT

REPEATED = "\x1f"
_CLAUSES = {
    "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows", "distinct", "order",
    "limit", "offset", "hint", "with_", "sort", "cluster", "distribute", "operation_modifiers",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class QuerySemantics:
    """relation: the result;  notes: its clauses as (name, hash);  ties: as in `Evaluation`"""

    relation: Relation
    notes: tuple[tuple[str, str], ...] = ()
    ties: frozenset[tuple[str, str]] = frozenset()


def relation_of(tree: exp.Query, tables: Mapping[str, Relation]) -> Relation:
    """Evaluate a qualified tree over its tables; a query that is not understood is equal only to its own text."""
    try:
        return evaluate(tree, tables, strict=True).relation
    except Unclear as reason:
        whole = mix("opaque", tree.sql(DIALECT), *(tables[name].rows for name in sorted(tables)))
        every = mix(whole, *(value.hash for name in sorted(tables) for value in tables[name].all_values()))
        reads = frozenset().union(*(value.reads for table in tables.values() for value in table.all_values()))
        columns = {
            name.lower(): Value(hash=mix(every, name), reads=reads, volatile=True, joined=True)
            for name in tree.named_selects
        }
        return Relation(
            parts=(every,), columns=columns, reads=reads, marks=frozenset({"opaque"}), doubts=frozenset({str(reason)})
        )


def names(tree: exp.Query, tables: Mapping[str, Relation]) -> frozenset[tuple[str, str]]:
    """(table, column) pairs that a qualified tree names, whether its result depends on them or not."""
    run = Evaluation(tables=dict(tables), strict=True, query=query_in)
    try:
        relation = query_in(tree, Scope(run=run, ctes={}))
    except Unclear:
        relation = relation_of(tree, tables)
    return relation.reads.union(run.named, *(value.reads for value in relation.all_values()))


def evaluate(tree: exp.Expr, tables: Mapping[str, Relation], strict: bool) -> QuerySemantics:
    """Evaluate a tree over the known tables.

    strict  an unknown column is an error, also in a query without FROM
    raises  Unclear
    """
    alone(tree)
    run = Evaluation(tables=dict(tables), strict=strict, query=query_in)
    relation = query_in(tree, Scope(run=run, ctes={}))
    return QuerySemantics(relation, tuple(run.notes), frozenset(run.ties))


def query_in(tree: exp.Expr, scope: Scope) -> Relation:
    """Evaluate a nested query: `scope` holds the visible CTEs and outer names, and no sources."""
    with_ = tree.args.get("with_")
    for cte in with_.expressions if with_ else ():
        name = cte.alias.lower()
        alias = cte.args.get("alias")
        names = [c.name.lower() for c in (alias.args.get("columns") or [])] if alias else []
        own = tree.args["with_"].args.get("recursive") and any(
            t.name.lower() == name for t in cte.this.find_all(exp.Table)
        )
        inner = scope.beside()
        cte_relation = _recursive(cte.this, name, names, inner) if own else renamed(query_in(cte.this, inner), names)
        scope.ctes = {**scope.ctes, name: cte_relation}
    match tree:
        case exp.Subquery():
            relation = query_in(tree.this, scope.beside())
            return limited(
                tree, relation, Values(scope=replace(scope.beside(), sources={"": relation})), relation.all_values()
            )
        case exp.SetOperation():
            relation = united(tree, lambda part: query_in(part, scope.beside()), scope.run.notes)
            seen = replace(scope.beside(), sources={"": relation})
            return limited(tree, relation, Values(scope=seen), relation.all_values())
        case exp.Select():
            return _Select(tree, scope).relation()
        case exp.Values():
            return read(tree, (), scope).views.popitem()[1]
        case exp.Table():
            return _Select(exp.select("*").from_(tree.copy()), scope).relation()
    raise Unclear(f"{type(tree).__name__.upper()} is not understood")


def _recursive(tree: exp.Expr, name: str, names: list[str], scope: Scope) -> Relation:
    """A recursive CTE: every row and value may depend on every other one."""
    if not isinstance(tree, exp.Union):
        raise Unclear(f"{name} refers to itself without UNION")
    first = query_in(tree.this, scope.beside())
    names = names or list(first.columns)
    if first.rest:
        raise Unclear(f"{name} refers to itself, and its columns are not known")
    itself = Relation(
        parts=(mix("itself"),), columns={one: Value(hash=mix("itself", at)) for at, one in enumerate(names)}, bare=True
    )
    then = query_in(tree.expression, replace(scope.beside(), ctes={**scope.ctes, name: itself}))
    values = [value.hash for value in (*first.columns.values(), *then.columns.values())]
    part = mix("recursive", bool(tree.args.get("distinct")), first.rows, then.rows, *values)
    reads = [value.reads for value in (*first.columns.values(), *then.columns.values())]
    columns = {
        one: Value(hash=mix("@", part, at), reads=frozenset().union(*reads), joined=True)
        for at, one in enumerate(names)
    }
    return Relation(
        parts=(part,), columns=columns, reads=first.reads | then.reads, marks=first.marks | then.marks | {"set"}
    )


@dataclass(slots=True)
class _Output:
    """One item of a SELECT: a column by name, or all columns of an unknown source."""

    name: str
    value: Value
    rest: Rest | None = None


@dataclass(slots=True)
class _Select:
    tree: exp.Select
    scope: Scope
    outputs: list[_Output] = field(default_factory=list)
    given: From | None = None

    def relation(self) -> Relation:
        if branches.is_taken_by_rows(self.tree):
            self.given = source(self.tree.args["from_"].this, self.scope)
            if (by_branch := branches.united(self.tree, self.given.views, self.scope)) is not None:
                return by_branch
        if odd := [key for key, value in self.tree.args.items() if value and key not in _CLAUSES]:
            raise Unclear(f"{odd[0].rstrip('_').upper()} is not understood")
        from_ = self._from()
        self.scope.sources, self.scope.merged, self.scope.hidden = from_.views, from_.merged, from_.hidden
        rows = from_.rows
        if where := self.tree.args.get("where"):
            conditions = Values(scope=self.scope, rows=rows.rows).conjuncts(where.this)
            self._note("WHERE", *sorted(one.hash for one in conditions))
            rows = simpler.narrowed(rows, conditions)
        rows, values = self._grouped(rows)
        rows = self._having(rows, values)
        values.rows, values.arrival = rows.rows, rows.arrival
        rows = self._projected(rows, values)
        if qualify := self.tree.args.get("qualify"):
            seen = replace(values, aliases=self._aliases(), done=self._done())
            rows = simpler.narrowed(rows, seen.conjuncts(qualify.this))
            rows = replace(rows, marks=rows.marks | {"window"})
            self._note("QUALIFY", rows.rows)
        rows = replace(
            rows, columns=_named(self.outputs), rest=tuple(o.rest for o in self.outputs if o.rest), branches=()
        )
        rows = self._distinct(rows)
        seen = replace(values, aliases=self._aliases(), done=self._done(), first=True)
        return limited(self.tree, rows, seen, [output.value for output in self.outputs])

    def _note(self, clause: str, *hashes: str) -> None:
        self.scope.run.notes.append((clause, mix(*hashes)))

    def _from(self) -> From:
        from_ = self.tree.args.get("from_")
        if from_ is None:
            sources = From(Relation(parts=(mix("one row"),), columns={}, unique=frozenset()), {})
        else:
            joins, notes = self.tree.args.get("joins") or (), len(self.scope.run.notes)
            sources = self.given or read(from_.this, joins, self.scope)
            where = self.tree.args.get("where")
            if (stronger := outer.strengthened(joins, where and where.this, sources.views)) is not None:
                self.scope.run.step()
                del self.scope.run.notes[notes:]
                sources = read(from_.this, stronger, self.scope)
            self._note("FROM", *sorted(sources.rows.parts))
        for lateral in self.tree.args.get("laterals") or ():
            sources = generated(sources, lateral, self.scope)
        return sources

    def _aliases(self) -> dict[str, exp.Expr]:
        return {
            part.alias.lower(): part.this
            for part in self.tree.expressions
            if isinstance(part, exp.Alias) and part.alias
        }

    def _done(self) -> dict[str, Value]:
        return {output.name: output.value for output in self.outputs}

    def _windows(self) -> dict[str, exp.Expr]:
        return {one.name.lower(): one for one in self.tree.args.get("windows") or ()}

    def _grouped(self, rows: Relation) -> tuple[Relation, Values]:
        group = self.tree.args.get("group")
        plain = Values(
            scope=self.scope,
            rows=rows.rows,
            order=rows.order,
            arrival=rows.arrival,
            unique=rows.unique,
            windows=self._windows(),
        )
        asked = [
            *self.tree.expressions,
            *(self.tree.args[k] for k in ("having", "qualify", "order") if self.tree.args.get(k)),
        ]
        if not (group or self.tree.args.get("having") or any(functions.aggregates(part) for part in asked)):
            return rows, plain
        keys = grouping(group, self.tree.expressions, replace(plain, aliases=self._aliases()))
        self._note("GROUP BY", keys.hash)
        of_keys: list[Value] = []
        if group is not None and keys.plain and keys.sets[0]:
            rows, of_keys = simpler.lifted(rows, keys.sets[0])
        part = mix("group", rows.rows, keys.hash)
        reads = rows.reads.union(*(value.reads for value in keys.values.values()))
        groups = replace(rows.sealed(part if group else mix("one row"), "group"), reads=reads)
        groups = replace(groups, columns={}, rest=(), unique=frozenset(keys.values) if keys.plain else None)
        groups = simpler.narrowed(groups, of_keys)
        values = replace(plain, group=part + self._order_of(keys), keys=frozenset(keys.values), unique=groups.unique)
        values.nonempty = group is not None and all(keys.sets)
        return groups, values

    def _order_of(self, keys: GroupingSets) -> str:
        """The order of the GROUP BY if `grouping_id()`, whose bits depend on it, is used."""
        asks = self.tree.find(exp.GroupingId) is not None
        return mix(*keys.values) if asks else ""

    def _having(self, rows: Relation, values: Values) -> Relation:
        having = self.tree.args.get("having")
        if having is None:
            return rows
        conditions = replace(values, aliases=self._aliases()).conjuncts(having.this)
        self._note("HAVING", *sorted(one.hash for one in conditions))
        return simpler.narrowed(rows, conditions)

    def _projected(self, rows: Relation, values: Values) -> Relation:
        seen: dict[str, exp.Expr] = {}
        safe = bool(values.group) or any(functions.only_columns(part) for part in self.tree.expressions)
        for part in self.tree.expressions:
            if isinstance(part, exp.QueryTransform):
                raise Unclear("TRANSFORM runs a program")
            rows = self._output(part, rows, replace(values, aliases=dict(seen), done=self._done()))
            rows = self._unknown_functions(part, rows, safe, values)
            if isinstance(part, exp.Alias):
                seen[part.alias.lower()] = part.this
        if any(functions.windows(part) for part in self.tree.expressions):
            rows = replace(rows, marks=rows.marks | {"window"})
        return rows

    def _unknown_functions(self, part: exp.Expr, rows: Relation, safe: bool, values: Values) -> Relation:
        """The rows with a doubt for each unknown function that could yield any number of rows, or one for all."""
        for call in (n for n in part.walk(prune=lambda inner: isinstance(inner, exp.Query)) if functions.strange(n)):
            outermost = call is part or (call.parent is part and isinstance(part, (exp.Alias, exp.Aliases)))
            if outermost or not safe:
                what = f"{functions.called(call)} is not known: it may yield any number of rows"
                doubt = mix("strange", values.value(call).hash)
                rows = replace(rows, parts=(*rows.parts, doubt), doubts=rows.doubts | {what}, unique=None)
        return rows

    def _output(self, part: exp.Expr, rows: Relation, values: Values) -> Relation:
        if isinstance(part, exp.Star) or (isinstance(part, exp.Column) and isinstance(part.this, exp.Star)):
            self._star(part, values)
            return rows
        of = part.this if isinstance(part, (exp.Alias, exp.Aliases)) else part
        names = [c.name.lower() for c in part.expressions] if isinstance(part, exp.Aliases) else []
        call = functions.generator(of)
        if call is None and not functions.is_one_row(of):
            self.outputs.append(_Output(self.scope.label(part), replace(values.value(of), name=part.alias_or_name)))
            return rows
        call = call if call is not None else of
        return self._yields(part, of, call, names or ([part.alias.lower()] if part.alias else []), rows, values)

    def _yields(
        self, part: exp.Expr, of: exp.Expr, call: exp.Expr, names: list[str], rows: Relation, values: Values
    ) -> Relation:
        value = generator(call, values)
        if not functions.is_one_row(call):
            tag = mix("generate", functions.outer(call), value.hash)
            tagged = value.tagged(tag)
            rows = replace(rows, parts=(*rows.parts, tag), unique=None, marks=rows.marks | {"generate"})
            rows = replace(rows, reads=rows.reads | value.reads, volatile=rows.volatile or value.volatile)
            self._note("a generator", tag)
        else:
            tag, tagged = "", value
        if of is not call:
            whole = values.value(of)
            self.outputs.append(_Output(self.scope.label(part), tagged.opaque(mix(tagged.hash, whole.hash))))
            return rows
        view = yielded(call, value, names or ([] if functions.is_one_row(call) else [self.scope.label(part)]), values)
        view = view.tagged(tag) if tag else view
        self.outputs += [_Output(name, one) for name, one in view.columns.items()]
        self.outputs += [_Output("", rest.value, rest) for rest in view.rest]
        return rows

    def _star(self, part: exp.Expr, values: Values) -> None:
        star = part if isinstance(part, exp.Star) else part.this
        alias = part.args.get("table") if isinstance(part, exp.Column) else None
        left_out, but = self._left_out(star, alias.name.lower() if alias else "")
        named, rests = self.scope.star(alias.name.lower() if alias else "", but)
        instead = {one.alias.lower(): values.value(one.this) for one in star.args.get("replace") or ()}
        renames = {one.this.name.lower(): one.alias.lower() for one in star.args.get("rename") or ()}
        for name, value in named:
            if name not in left_out:
                self.outputs.append(_Output(renames.get(name, name), instead.pop(name, value)))
        for rest in rests:
            remaining = rest.without({*left_out, *instead, *renames})
            self.outputs.append(_Output("", remaining.value, remaining))
        if rests:
            self.outputs += [_Output(name, value) for name, value in instead.items()]
            self.outputs += [_Output(to, rests[0].column(name)) for name, to in renames.items()]

    def _left_out(self, star: exp.Expr, of: str) -> tuple[set[str], frozenset[tuple[str, str]]]:
        """The columns that EXCEPT names: of any source, and as (source, column)."""
        plain: set[str] = set()
        but: set[tuple[str, str]] = set()
        for part in star.args.get("except_") or ():
            source = part.args.get("table")
            if source is None:
                plain.add(part.name.lower())
                continue
            at = source.name.lower()
            if part.args.get("db") is not None or at not in ({of} if of else set(self.scope.sources)):
                if self.scope.run.lenient:  # a field of a column, which is kept
                    continue
                raise Unclear(f"EXCEPT ({part.sql(DIALECT)}) may leave out a field of a column")
            if not of and (at, part.name.lower()) in self.scope.hidden:
                raise Unclear(f"EXCEPT ({part.sql(DIALECT)}) leaves out one of two columns that USING made one")
            but.add((at, part.name.lower()))
        return plain, frozenset(but)

    def _distinct(self, rows: Relation) -> Relation:
        distinct = self.tree.args.get("distinct")
        if not distinct:
            return rows
        if distinct.args.get("on"):
            raise Unclear("DISTINCT ON is not understood")
        self._note("DISTINCT", *sorted(value.hash for value in rows.all_values()))
        return without_repeats(rows, "distinct")


def _named(outputs: list[_Output]) -> dict[str, Value]:
    """Outputs by name; a repeated name gets a suffix that no name can contain."""
    columns: dict[str, Value] = {}
    for output in outputs:
        if output.rest is None:
            name = output.name
            while name in columns:
                name += REPEATED
            columns[name] = output.value
    return columns
