"""Window functions: their rows, the order of these, and the treatment of ties."""

from collections.abc import Iterable

from sqlglot import exp

from console.planning.sql.relation import Value, combined, mix
from console.planning.sql.semantics import forms, functions
from console.planning.sql.semantics.evaluator import Evaluator

_FRAME = "default frame"


def windowed(node: exp.Window, values: Evaluator) -> Value:
    values.inside += 1
    function = values.value(node.this)
    values.inside -= 1
    given = forms.in_windows(node, values.windows)
    partition = {v.hash: v for one in given for v in map(values.value, one.args.get("partition_by") or [])}
    ordered = [part for one in given if one.args.get("order") for part in one.args["order"].expressions]
    order = [values.value(part) for part in ordered]
    frames = [one.args["spec"] for one in given if one.args.get("spec")]
    frame = _plain(forms.frame(frames[-1]) if frames else _FRAME, bool(order))
    before = "" if order else values.order  # rows without an order of their own keep the source's
    label = f"window/{values.rows}{before}/{len(partition)}/{frame}"
    result = combined(label, [function, *(partition[key] for key in sorted(partition)), *order])
    result = result.opaque(result.hash)
    keys = (values.value(part.this if isinstance(part, exp.Ordered) else part) for part in ordered)
    if not functions.takes_ties(node.this, forms.by_rows(frame)):
        return result
    if total({*partition, *(key.hash for key in keys)}, values.unique):
        return result
    values.scope.run.ties.add((result.hash, values.arrival))
    return result.opaque(mix("ties", values.arrival, result.hash))


def _plain(frame: str, ordered: bool) -> str:
    usual = "RANGE:UNBOUNDED PRECEDING:CURRENT ROW:" if ordered else "ROWS:UNBOUNDED PRECEDING:UNBOUNDED FOLLOWING:"
    return _FRAME if frame == usual else frame


def total(by: Iterable[str], unique: frozenset[str] | None) -> bool:
    """Whether an order by these values certainly has no ties, by the values known to be unique."""
    return unique is not None and unique <= set(by)
