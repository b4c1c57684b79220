"""Legitimate differences between two answers of one query: row order, the rows that a LIMIT keeps, and inexact columns."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from console.model.recorded_call import AnswerForm
from console.planning.sql.relation import Relation
from console.planning.sql.semantics import Unclear, evaluate
from console.planning.sql.semantics.functions import called
from console.planning.sql.tree import Text, parse

_ESTIMATING = frozenset(
    ("approx_percentile", "percentile_approx", "approx_top_k", "kll_sketch_agg_double", "kll_sketch_agg_bigint")
)  # sketches whose result depends on the order of rows; that of HLL does not


def answer_form(sql: str, exact: Mapping[str, Relation], inexact: Mapping[str, Relation]) -> AnswerForm:
    """The form of a compiled query's answer.

    exact    the tables that it reads, as if each value were exact;  inexact  the same with inexact columns marked
    """
    tree = parse(Text(sql=sql))
    if tree is None:
        return AnswerForm(doubt="its query cannot be read")
    volatile = _volatile(tree, exact)
    outputs = _outputs(tree)
    estimates = [name for name, part in outputs.items() if any(map(_estimates, part.walk()))]
    estimates += [name for name in _volatile(tree, inexact) if name not in volatile]
    own = {id(node) for part in outputs.values() for node in part.walk()}
    inner = any(_estimates(node) and id(node) not in own for node in tree.walk())
    cut = any(node.parent is not tree for node in tree.find_all(exp.Limit, exp.Offset))
    return AnswerForm(
        order=tuple(_order(tree)),
        limited=any(tree.args.get(key) is not None for key in ("limit", "offset")),
        volatile=volatile,
        estimates=tuple(dict.fromkeys(estimates)),
        doubt="it estimates within a subquery" if inner else "a subquery of it ends after some rows" if cut else "",
    )


def _volatile(tree: exp.Query, relations: Mapping[str, Relation]) -> tuple[str, ...]:
    """Output columns of which two computations may differ, as spelled in the answer."""
    try:
        relation = evaluate(tree, relations, strict=True).relation
    except Unclear:
        return ()  # a difference from one run to the next is detected by running it twice
    names = {part.lower(): part for part in tree.named_selects}
    return tuple(names.get(name.lower(), name) for name, value in relation.columns.items() if value.volatile)


def marked(relation: Relation, columns: frozenset[str]) -> Relation:
    """A table with some columns marked as inexact. columns: in lower case"""
    values = {
        name: replace(value, volatile=True) if name in columns else value for name, value in relation.columns.items()
    }
    return replace(relation, columns=values)


def answer_order(sql: str) -> tuple[str, ...]:
    """Output columns by which a compiled query's answer is ordered: the leading ones of its ORDER BY."""
    tree = parse(Text(sql=sql))
    return tuple(_order(tree)) if tree is not None else ()


def _outputs(tree: exp.Query) -> dict[str, exp.Expr]:
    return {part.alias_or_name: part for part in tree.selects} if isinstance(tree, exp.Select) else {}


def _order(tree: exp.Query) -> Iterator[str]:
    """The leading terms of its ORDER BY that are columns of the answer."""
    by = tree.args.get("order")
    names = {name.lower(): name for name in tree.named_selects}
    written = {part.unalias().sql(): name for name, part in _outputs(tree).items()}
    for term in by.expressions if isinstance(by, exp.Order) else ():
        key = term.this if isinstance(term, exp.Ordered) else term
        bare = isinstance(key, exp.Column) and not key.table
        name = names.get(key.name.lower(), "") if bare else written.get(key.sql(), "")
        if not name:
            return
        yield name


def _estimates(node: exp.Expr) -> bool:
    return isinstance(node, exp.ApproxQuantile) or called(node) in _ESTIMATING
