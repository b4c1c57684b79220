"""The interface by which rewrites evaluate expressions of a SELECT."""

from typing import Protocol

from sqlglot import exp

from console.planning.sql.relation import Value
from console.planning.sql.semantics.scope import Scope


class Conditions(Protocol):
    """Truth values of expressions."""

    def is_condition(self, node: exp.Expr) -> bool: ...

    def of(self, node: exp.Expr, *, filters: bool) -> Value: ...


class Evaluator(Protocol):
    """Evaluates the expressions of one SELECT; its fields are described in `values.Values`."""

    scope: Scope
    rows: str
    order: str
    arrival: str
    unique: frozenset[str] | None
    nonempty: bool
    windows: dict[str, exp.Expr]
    inside: int

    @property
    def truths(self) -> Conditions: ...

    def value(self, node: exp.Expr) -> Value: ...

    def grouped(self, aggregate: Value) -> Value: ...
