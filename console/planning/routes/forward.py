"""A new version copied from the live one: by the operator's query, by proof, or unchanged in another layout."""

from collections.abc import Mapping
from dataclasses import replace

from console.errors import Problem
from console.planning.landing.conversion import Conversion
from console.planning.landing.forward_query import continued
from console.planning.reuse import regroup
from console.planning.reuse.groups import Kept
from console.planning.reuse.states import kept_states
from console.planning.routes import metadata
from console.planning.routes.change import Change
from console.planning.routes.reasons import are, computable, laid, listed
from console.planning.routes.verdict import LiveCopy, Verdict
from console.planning.sql import reads
from console.planning.sql.reads import Pick
from console.remedy import DropKey, SetKey


def verdict(change: Change) -> Verdict | None:
    if change.rebuilt_sources:
        return None
    if change.is_landing:
        return _landing(change)
    if change.readable:
        if change.relaid:
            return _laid_out(change)
        return _regrouped(change) if change.feeds.broken else None  # the states can be kept, their feed cannot
    if is_given(change):
        return _given(change)
    if change.wanted.table.kind == "aggregate":
        return _regrouped(change)
    if not change.diff.rows:
        return _narrowed(change)
    return None if change.proof.missing else _proven(change)


def _landing(change: Change) -> Verdict | None:
    """A new version with the forward query's values; else the stored rows unchanged, in another layout."""
    if (converted := change.conversion) is not None and not converted.why:
        return _converted(change, converted)
    if (layout := change.landing_layout) is None or layout.why:
        return None
    other = metadata.landing_changes(change)
    why = f"{'; '.join([laid(change), *other])}: the same rows, copied from the live {change.name}"
    made = _copy(change, why, LiveCopy("", states=True), metadata.of_landing(change))
    return replace(made, layout=layout.partition_by)


def _converted(change: Change, converted: Conversion) -> Verdict:
    table, computed = change.wanted.table, list(continued(change.wanted.table, change.live).converted)
    relaid = [laid(change)] if table.partition_by != change.live.table.partition_by else []
    what = "; ".join([*relaid, *metadata.landing_changes(change)])
    why = f"{listed(computed)} {are(computed)} computed by its forward_query{f'; {what}' if what else ''}: copied from the live {change.name}"
    made = _copy(change, why, LiveCopy(converted.forward), metadata.of_landing(change))
    return replace(made, layout=table.partition_by, conversion=converted)


def is_given(change: Change) -> bool:
    """Whether the operator's query computes the missing columns. States cannot be recovered from an aggregate's merged
    results."""
    table = change.wanted.table
    return bool(table.forward_query) and table.kind != "aggregate" and change.diff.rows


def refused(change: Change) -> tuple[Problem, ...]:
    """Problems of a forward query that has no effect, since history is computed from the sources anyway."""
    table = change.wanted.table
    if not table.forward_query or is_given(change):
        return ()
    if table.kind != "aggregate":
        return change.unused_forward_query("other rows are wanted than it holds")
    return change.unused_forward_query("its history is re-read from its source")


def _given(change: Change) -> Verdict:
    table = change.wanted.table
    sql, problems = reads.forward(table, change.live)
    if table.forward_query == change.live.table.forward_query:
        message = f"forward_query of {table.name} is stale: it made the release that is live, not this change"
        remedies = (
            SetKey(node=table.name, key="forward_query", effect="written for this change"),
            DropKey(node=table.name, key="forward_query"),
        )
        # alone: a query that is written anew or dropped does not have to fit this change as well
        problems = (Problem(code="C109", message=message, where=table.where, node=table.name, remedies=remedies),)
    why = f"{listed(list(change.diff.computed))} computed from the live {table.name} by its forward_query"
    return _copy(change, why, LiveCopy(sql), problems)


def _proven(change: Change) -> Verdict:
    """A copy in which every missing column is a function of the table's own columns."""
    given = change.proof.given
    why = f"{computable(list(given), change.name)}: copied from the live {change.name}"
    return _copy(change, why, LiveCopy(change.cache.by_value(reads.select, change.name, _with(given, change))))


def _with(given: Mapping[str, str], change: Change) -> tuple[Pick, ...]:
    """The wanted columns: served by the live version, or computed by `given`."""
    picks = {pick.name: pick for pick in change.diff.picks}
    picks |= {column: Pick(name=column, computed=sql) for column, sql in given.items()}
    return tuple(picks[column.name] for column in change.wanted.table.columns)


def _narrowed(change: Change) -> Verdict | None:
    """A copy of the stored rows that pass the new filter, which reads only stored columns."""
    if (narrower := change.narrower) is None:
        return None
    name = change.name
    given = [computable(list(narrower.given), name)] if narrower.given else []
    filtered = [f"the new filter reads only columns that {name} keeps"] if narrower.conditions else []
    why = ", and ".join([*given, *filtered]) or f"the rows of the live {name} already hold every wanted value"
    sql = change.cache.by_value(reads.select, name, _with(narrower.given, change), narrower.conditions)
    made = _copy(change, f"{why}: copied from the live {name}", LiveCopy(sql), refused(change))
    return replace(made, filters=tuple(feed.materialization for feed in change.wanted.feeds if narrower.conditions))


def _laid_out(change: Change) -> Verdict | None:
    """A copy of the same rows, or of an aggregate's partial states if the live version has them all."""
    wanted, name, problems = change.wanted, change.name, change.unused_for_layout()
    if wanted.table.kind != "aggregate":
        why = f"{laid(change)}: the same rows, copied from the live {name}"
        return _copy(change, why, LiveCopy(change.cache.by_value(reads.select, name, change.diff.picks)), problems)
    kept = kept_states(wanted, change.live, [column.name for column in wanted.table.columns])
    if any(column.name.lower() not in kept for column in wanted.columns):
        return _regrouped(change)
    why = f"{laid(change)}: the same partial states, copied from the live {name}"
    return _copy(change, why, LiveCopy(reads.stored(name, wanted.columns), states=True), problems)


def _regrouped(change: Change) -> Verdict | None:
    """An aggregate's groups, merged from the live version's: by other keys, filtered, or in wider types."""
    groups = change.groups
    if groups is None or not groups.whole or not groups.sliceable or not columns_allow(change):
        return None
    why = f"{_how(change, groups)}: the partial states of the live {change.name}, united"
    problems = change.unused_forward_query("the states are copied")
    made = _copy(change, why, LiveCopy(regroup.copied(change.wanted, groups, {}), states=True), problems)
    return replace(made, filters=filtering(change, groups))


def filtering(change: Change, groups: Kept) -> tuple[str, ...]:
    """Materializations whose new filter drops groups."""
    return tuple(feed.materialization for feed in change.wanted.feeds) if groups.filters else ()


def columns_allow(change: Change) -> bool:
    """Whether no column becomes NOT NULL, which stored states cannot prove."""
    return not any(why.kind == "nullability" for why in change.diff.computed.values())


def _how(change: Change, groups: Kept) -> str:
    wanted = change.wanted
    parts: list[str] = []
    if not groups.same_groups:
        parts.append(f"grouped by {listed(wanted.keys)}, of which the live keys tell")
    if groups.filters:
        parts.append(f"groups that pass {listed(groups.filters)}")
    if wider := [name for name, state in groups.states.items() if state.wider]:
        parts.append(f"{listed(wider)} in a wider type")
    return "; ".join(parts) or (laid(change) if change.relaid else "its feed changes and its states do not")


def _copy(change: Change, why: str, copied: LiveCopy, problems: tuple[Problem, ...] = ()) -> Verdict:
    return Verdict(
        name=change.name, action="forward", why=why, wanted=change.wanted, live=change.live, diff=change.diff,
        columns=change.diff.columns, copied=copied, problems=problems,
    )  # fmt: skip
