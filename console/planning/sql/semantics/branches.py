"""A SELECT that works row by row over a UNION ALL is evaluated as a UNION ALL of that SELECT over each branch."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from console.planning.sql.relation import FALSE, Relation
from console.planning.sql.semantics import functions
from console.planning.sql.semantics.scope import Scope
from console.planning.sql.semantics.set_ops import put_together

_BRANCH = "\x1fbranch"


def is_taken_by_rows(tree: exp.Select) -> bool:
    """Whether each row of its only source yields at most one, independently of the others."""
    from_ = tree.args.get("from_")
    clauses = {key for key, clause in tree.args.items() if clause}
    if from_ is None or not clauses <= {"expressions", "from_", "where", "with_"}:
        return False
    if not isinstance(from_.this, (exp.Table, exp.Subquery)) or from_.this.args.get("joins"):
        return False
    parts = [*tree.expressions, *([tree.args["where"].this] if tree.args.get("where") else [])]
    return not any(
        functions.aggregates(part) or functions.windows(part) or functions.generates(part)
        or any(functions.strange(n) or functions.is_volatile(n) or functions.is_one_row(n) for n in part.walk())
        for part in parts
    )  # fmt: skip


def united(tree: exp.Select, views: Mapping[str, Relation], scope: Scope) -> Relation | None:
    """The SELECT over each branch, combined; None if its source is not a UNION ALL."""
    if len(views) != 1 or not (branches := next(iter(views.values())).branches):
        return None
    if any(
        len({branch.columns[name].type for branch in branches} | {""}) != 2 for name in _computed_with(tree, branches)
    ):
        return None  # branches of another type are cast before anything is computed
    alias = next(iter(views))
    relations = []
    for branch in branches:
        one = tree.copy()
        one.set("with_", None)
        named = exp.Table(this=exp.to_identifier(_BRANCH), alias=exp.TableAlias(this=exp.to_identifier(alias)))
        one.args["from_"].set("this", named)
        relations.append(scope.run.query(one, replace(scope.beside(), ctes={**scope.ctes, _BRANCH: branch})))
    if all(len({branch.columns[name].type for branch in relations} | {""}) == 2 for name in relations[0].columns):
        # branches of another type would be cast to a common type
        relations = [branch for branch in relations if FALSE.hash not in branch.filters] or relations[:1]
    return put_together(relations) if len(relations) > 1 else relations[0]


def _computed_with(tree: exp.Select, branches: tuple[Relation, ...]) -> set[str]:
    """The columns that a SELECT computes with, instead of showing them unchanged."""
    shown = [part for part in tree.expressions if not isinstance(part.unalias(), exp.Column)]
    parts = [*shown, *([tree.args["where"].this] if tree.args.get("where") else [])]
    names = {one.name.lower() for part in parts for column in part.find_all(exp.Column) for one in column.parts}
    return names & set(branches[0].columns)
