"""Whether a table whose feed only filters more can be copied from itself: the new filter, over columns that it keeps.

The rows that the new query wants are among those that the live one gave if adding the live filter to the new one changes
nothing. Of the new conditions, those that every stored row has passed already are left out; each of the others must be
a function of stored columns, as in `proof`. A row is kept where all of them are true: NULL leaves it out, as in WHERE.

Of a table that keeps one row of each key, a filter that asks of the key alone keeps or drops all rows of a key, the newest with them;
any other may let a row through that was replaced. Where equal rows are one, each row is its key, so that whatever its columns give is
the same for all the rows that it stands for: of such a table, columns may change as well.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from console.model.live import Feed, TableState
from console.planning.fingerprint import DesiredTable
from console.planning.reuse.proof import FeedQuery, expressed, flat_query, kept_values, logical_columns, replaced
from console.planning.sql.compile import NameScope
from console.planning.sql.relation import Relation
from console.planning.sql.semantics import relation_of
from console.planning.sql.semantics.functions import generates, is_volatile
from console.planning.sql.syntax.flat import conjuncts
from console.planning.sql.tree import render


@dataclass(frozen=True, slots=True)
class Narrower:
    """conditions: SQL over the live table's logical columns, all of them true of a wanted row;  given: as in `Proof`"""

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
    """The wanted rows among the stored ones, None where they cannot be told from what the table keeps.

    feeds, columns, now, was  as of `proof.proven`
    """
    old, new = [flat_query(feed, was) for feed in feeds], [flat_query(feed, now) for feed in wanted.feeds]
    if {wanted.table.kind, live.table.kind} != {"append"} or not _alike_merged(wanted, live):
        return None
    if len(old) != 1 or len(new) != 1:
        return None  # nothing tells which feed a stored row came from
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
    """Whether both keep every row, both equal rows once, or both the newest row of the same keys by the same order."""
    new, old = wanted.table, live.table
    if new.is_distinct or old.is_distinct or not (new.key and old.key):
        return new.is_distinct == old.is_distinct and bool(new.key) == bool(old.key)
    same_keys = sorted(wanted.values[c] for c in new.key) == sorted(live.values[c] for c in old.key)
    return same_keys and [wanted.values[c] for c in new.order_by] == [live.values[c] for c in old.order_by]


def _of_keys(live: TableState) -> dict[str, tuple[str, str]]:
    return {stored: shown for stored, shown in logical_columns(live).items() if shown[0] in live.table.key}


def _conditions(query: FeedQuery) -> list[exp.Expr]:
    where = query.tree.args.get("where")
    return conjuncts(where.this) if where is not None else []


def _alike_named(before: FeedQuery, after: FeedQuery) -> bool:
    """Whether the live conditions can stand in the new query. A row of a join is stored with what was joined when it came, and
    WHERE judges it by that.
    """
    return len(before.aliases()) == len(after.aliases()) == 1 or before.aliases() == after.aliases()


def _row_by_row(query: FeedQuery) -> bool:
    """Its rows pass or do not pass by themselves, each as one row, and on every day in the same way."""
    if any(not isinstance(join.this, exp.Table) for join in query.tree.args.get("joins") or ()):
        return False
    parts = [part.unalias() for part in query.tree.expressions]
    if any(generates(part) or part.find(exp.Window, exp.AggFunc) is not None for part in parts):
        return False
    where = _conditions(query)
    return not any(is_volatile(node) or isinstance(node, exp.Query) for part in where for node in part.walk())


def _unfiltered(query: FeedQuery) -> FeedQuery:
    """The query without its filter: what an expression means must not rest on the rows that pass."""
    tree = query.tree.copy()
    tree.set("where", None)
    return replace(query, tree=tree)


def _implies(after: FeedQuery, before: FeedQuery) -> bool:
    """Whether all rows of one query are rows of the other, both over the same rows of their source."""
    rows_before, rows_after = _rows(before), _rows(after)
    if _rows(replace(before, known=after.known)).rows != rows_before.rows:
        return False  # the live filter means something else over the source as wanted
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
