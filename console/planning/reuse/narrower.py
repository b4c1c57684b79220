"""Whether a table whose feed only adds filters can be copied from itself, with the new filter over stored columns.

The new query's rows are a subset of the live one's if adding the live filter to the new query changes nothing. New
conditions that every stored row has passed already are dropped; each of the others must be a function of stored
columns, as in `proof`. A row is kept if all of them are true: NULL drops it, as in WHERE.

In a table that keeps one row of each key, a filter on the key alone keeps or drops all rows of a key, the newest
included; any other filter could admit a row that was replaced. In a distinct table the whole row is the key, so all the
rows that a stored one stands for have the same column values: there, columns may change as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from console.model.live import Feed, TableState
from console.planning.fingerprint import DesiredTable
from console.planning.reuse.proof import FeedQuery, Shown, expressed, flat_query, kept_values, logical_columns, replaced
from console.planning.sql.compile import NameScope
from console.planning.sql.relation import Relation
from console.planning.sql.semantics import relation_of
from console.planning.sql.semantics.functions import generates, is_volatile
from console.planning.sql.syntax.flat import conjuncts
from console.planning.sql.tree import render


@dataclass(frozen=True, slots=True)
class Narrower:
    """conditions: SQL over the live table's logical columns, all true for a wanted row;  given: as in `Proof`"""

    conditions: tuple[str, ...]
    given: Mapping[str, str]


def narrower(
    wanted: DesiredTable,
    live: TableState,
    feeds: Iterable[Feed],
    columns: Iterable[str],
    *,
    now: NameScope,
    was: NameScope,
) -> Narrower | None:
    """Selection of the wanted rows from the stored ones, None if the stored columns do not determine them.

    feeds, columns, now, was  as of `proof.proven`
    """
    old, new = [flat_query(feed, was) for feed in feeds], [flat_query(feed, now) for feed in wanted.feeds]
    if {wanted.table.kind, live.table.kind} != {"append"} or not _alike_merged(wanted, live):
        return None
    if len(old) != 1 or len(new) != 1:
        return None  # a stored row does not reveal which feed it came from
    before, after = old[0], new[0]
    if before is None or after is None or not (_row_by_row(before) and _row_by_row(after)):
        return None
    if before.feed.source != after.feed.source or not _alike_named(before, after) or not _implies(after, before):
        return None
    bare_before, bare_after = _unfiltered(before), _unfiltered(after)
    passed = {value.hash for value in bare_before.value(_conditions(before))[0]}
    kept = kept_values(bare_before, live, logical_columns(live))
    judging = kept_values(bare_before, live, _of_keys(live)) if live.table.key else kept
    conditions: list[str] = []
    for node, value in zip(_conditions(after), bare_after.value(_conditions(after))[0], strict=True):
        if value.volatile:
            return None
        if value.hash in passed:
            continue
        made, lacks = replaced(bare_after, node.copy(), judging)
        if lacks:
            return None
        conditions.append(render(made))
    given, missing = expressed(bare_after, kept, list(columns))
    return Narrower(tuple(conditions), given) if (conditions or wanted.table.is_distinct) and not missing else None


def _alike_merged(wanted: DesiredTable, live: TableState) -> bool:
    """Whether both keep every row, both keep distinct rows, or both the newest row of the same keys by the same order."""
    new, old = wanted.table, live.table
    if new.is_distinct or old.is_distinct or not (new.key and old.key):
        return new.is_distinct == old.is_distinct and bool(new.key) == bool(old.key)
    same_keys = sorted(wanted.values[c] for c in new.key) == sorted(live.values[c] for c in old.key)
    return same_keys and [wanted.values[c] for c in new.order_by] == [live.values[c] for c in old.order_by]


def _of_keys(live: TableState) -> dict[str, Shown]:
    return {stored: shown for stored, shown in logical_columns(live).items() if shown.name in live.table.key}


def _conditions(query: FeedQuery) -> list[exp.Expr]:
    where = query.tree.args.get("where")
    return conjuncts(where.this) if where is not None else []


def _alike_named(before: FeedQuery, after: FeedQuery) -> bool:
    """Whether the live conditions can be added to the new query: one source each, or the same aliases. A join's rows
    were filtered by the values that were joined at their arrival.
    """
    return len(before.aliases()) == len(after.aliases()) == 1 or before.aliases() == after.aliases()


def _row_by_row(query: FeedQuery) -> bool:
    """Whether rows are filtered one by one and repeatably: no aggregates, windows or generators, no subquery or
    volatile function in WHERE."""
    if any(not isinstance(join.this, exp.Table) for join in query.tree.args.get("joins") or ()):
        return False
    parts = [part.unalias() for part in query.tree.expressions]
    if any(generates(part) or part.find(exp.Window, exp.AggFunc) is not None for part in parts):
        return False
    where = _conditions(query)
    return not any(is_volatile(node) or isinstance(node, exp.Query) for part in where for node in part.walk())


def _unfiltered(query: FeedQuery) -> FeedQuery:
    """The query without its filter, so that the meaning of an expression does not depend on the rows that pass."""
    tree = query.tree.copy()
    tree.set("where", None)
    return replace(query, tree=tree)


def _implies(after: FeedQuery, before: FeedQuery) -> bool:
    """Whether all rows of `after` are rows of `before`, over the same source rows."""
    rows_before, rows_after = _rows(before), _rows(after)
    if _rows(replace(before, known=after.known)).rows != rows_before.rows:
        return False  # the live filter has another meaning over the source as wanted
    if _rows(_unfiltered(before)).rows != _rows(_unfiltered(after)).rows:
        return False
    renamed = next(iter(after.aliases())) if len(after.aliases()) == 1 else ""
    both = after.tree.copy()
    for condition in _conditions(before):
        own = condition.copy()
        for column in own.find_all(exp.Column) if renamed else ():
            column.set("table", exp.to_identifier(renamed, quoted=True))
        both = both.where(own, copy=False)
    return _rows(replace(after, tree=both)).rows == rows_after.rows


def _rows(query: FeedQuery) -> Relation:
    return relation_of(query.tree, query.known.relations)
