"""Queries taken apart: subqueries merged, conditions split."""

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.merge_subqueries import merge_subqueries


def merged(tree: exp.Expr) -> exp.Expr | None:
    """A copy of the query with subqueries merged where possible; None if sqlglot cannot do it."""
    try:
        return merge_subqueries(tree.copy())
    except (SqlglotError, KeyError, AttributeError):
        return None


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The members of a conjunction, without parentheses; [] for no condition."""
    if node is None:
        return []
    node = node.unnest()
    if not isinstance(node, exp.And):
        return [node]
    return [part for side in (node.this, node.expression) for part in conjuncts(side)]
