"""Table by table, sources first: the cheapest exact way from the live release to the wanted one, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from console.errors import Problem
from console.model.live import Live, Release, TableState
from console.model.plan import Action, ColumnChange
from console.model.schema import types
from console.planning.desired import Desired, Wanted
from console.planning.diff import Diff, compare, same_declaration
from console.planning.sql.compile import Known, needs
from console.planning.sql.reads import Pick, compose, forward, landing_read, select
from console.planning.sql.relation import physical

REBUILT: frozenset[Action] = frozenset(("create", "forward", "replay"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one table.

    read      its read in the new release, where the live version stays
    forward   the query of a forward, else ""
    exposed   live columns that its read goes on showing, since a feed that stays reads them
    """

    name: str
    action: Action
    why: str
    wanted: Wanted | None
    live: TableState | None
    diff: Diff | None = None
    forward: str = ""
    read: str = ""
    exposed: tuple[str, ...] = ()
    columns: tuple[ColumnChange, ...] = ()

    @property
    def rebuilt(self) -> bool:
        """It gets a new version that must be filled."""
        return self.action in REBUILT and self.wanted is not None and self.wanted.table.kind != "landing"


@dataclass(slots=True)
class _Router:
    desired: Desired
    live: Live
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    exposed: dict[str, set[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def routes(desired: Desired, live: Live) -> tuple[dict[str, Verdict], tuple[Problem, ...]]:
    """A verdict for every table wanted or live, sources first, dropped ones last; and what the rules say of them."""
    router = _Router(desired, live)
    for name, wanted in desired.tables.items():
        state = live.release.table(name) if live.release else None
        router.verdicts[name] = (
            _landing(router, wanted, state) if wanted.table.kind == "landing" else _table(router, wanted, state)
        )
    for state in live.release.tables if live.release else ():
        if state.table.name not in desired.tables:
            why = "no longer declared; its files stay until cleanup"
            if state.table.kind == "landing":
                why = "no longer declared; its files stay, they are not ours"
            router.verdicts[state.table.name] = Verdict(state.table.name, "drop", why, None, state)
    return {name: _with_read(router, verdict) for name, verdict in router.verdicts.items()}, tuple(router.problems)


def _landing(router: _Router, wanted: Wanted, live: TableState | None) -> Verdict:
    name, stats = wanted.table.name, router.live.table(wanted.table.name)
    if live is None:
        why = f"new; adopted where it stands, {stats.rows:,} rows" if stats else "new; managed, so an empty one is made"
        return Verdict(name, "create", why, wanted, None)
    diff = compare(wanted, live)
    added = [column.name for column in wanted.table.columns if column.name in diff.computed]
    said = list(diff.settings)
    if added:
        said.insert(0, f"{_list(added)} added")
    if diff.hidden:
        said.insert(0, f"{_list(diff.hidden)} no longer read")
    if not said and same_declaration(wanted.table, live.table):
        return Verdict(name, "keep", "unchanged", wanted, live, diff)
    return Verdict(
        name, "metadata", f"{', '.join(said) or 'declaration'}: no row moves", wanted, live, diff, columns=diff.columns
    )


def _table(router: _Router, wanted: Wanted, live: TableState | None) -> Verdict:
    name = wanted.table.name
    if live is None:
        sources = _list(sorted({feed.source for feed in wanted.feeds}))
        return Verdict(name, "create", f"new: its history is computed from {sources}", wanted, None)
    diff = compare(wanted, live)
    moved = sorted({f.source for f in wanted.feeds if (v := router.verdicts.get(f.source)) and v.rebuilt})
    if moved:
        _forward_unused(
            router,
            wanted,
            f"its source {_list(moved)} is rebuilt, and positions in the old one say nothing about the new",
        )
        own = _why_computed(router, wanted, live, diff) if not diff.readable else "its own values are unchanged"
        return Verdict(
            name,
            "replay",
            f"{_list(moved)} is rebuilt and {name} is fed from its log; {own}",
            wanted,
            live,
            diff,
            columns=diff.columns,
        )
    if not diff.readable:
        return _recomputed(router, wanted, live, diff)
    if not diff.layout:
        return _relaid(router, wanted, live, diff)
    if (lost := _feeds_lose(router, wanted, live)) is not None:
        return Verdict(name, "replay", lost, wanted, live, diff, columns=diff.columns)
    _forward_unused(router, wanted, "nothing of it has to be computed")
    plain = all(pick.of == pick.name and not pick.type and not pick.fresh for pick in diff.picks)
    if plain and not diff.hidden and not diff.settings:
        return Verdict(name, "keep", "unchanged", wanted, live, diff)
    return Verdict(name, "metadata", _why_metadata(diff), wanted, live, diff, columns=diff.columns)


def _recomputed(router: _Router, wanted: Wanted, live: TableState, diff: Diff) -> Verdict:
    name, why = wanted.table.name, _why_computed(router, wanted, live, diff)
    if wanted.table.forward_query:
        if wanted.table.kind == "aggregate":
            hint = "drop forward_query: its history is re-read from its source"
            router.problems.append(
                Problem(
                    "C107",
                    f"{name} is an aggregate: merged results give no states back",
                    wanted.table.where,
                    hint,
                    node=name,
                )
            )
        elif not diff.rows:
            _forward_unused(router, wanted, "other rows are wanted than it holds")
        else:
            sql, problems = forward(wanted.table, live)
            router.problems += problems
            what = f"{_list(list(diff.computed))} computed from the live {name} by its forward_query"
            return Verdict(name, "forward", what, wanted, live, diff, forward=sql, columns=diff.columns)
    return Verdict(name, "replay", why, wanted, live, diff, columns=diff.columns)


def _relaid(router: _Router, wanted: Wanted, live: TableState, diff: Diff) -> Verdict:
    name = wanted.table.name
    to = f"partitioned by {_list(wanted.table.partition_by)}" if wanted.table.partition_by else "no longer partitioned"
    was = f"by {_list(live.table.partition_by)}" if live.table.partition_by else "not at all"
    if wanted.table.kind == "aggregate":
        return Verdict(
            name,
            "replay",
            f"{to} instead of {was}; partial states are computed anew",
            wanted,
            live,
            diff,
            columns=diff.columns,
        )
    written = wanted.table.forward_query.strip()
    if written and written != "*" and written.upper() != "SELECT *":
        _forward_unused(router, wanted, "only its layout changes, for which every column is taken as it is")
    sql = select(name, diff.picks)
    return Verdict(
        name,
        "forward",
        f"{to} instead of {was}: the same rows, copied from the live {name}",
        wanted,
        live,
        diff,
        forward=sql,
        columns=diff.columns,
    )


def _forward_unused(router: _Router, wanted: Wanted, why: str) -> None:
    if wanted.table.forward_query:
        message = f"forward_query of {wanted.table.name} is not used: {why}"
        router.problems.append(
            Problem("C108", message, wanted.table.where, "drop it once the change is live", "warn", wanted.table.name)
        )


def _feeds_lose(router: _Router, wanted: Wanted, live: TableState) -> str | None:
    """Why the live feeds cannot go on as they are, or None; what they still need of their sources is exposed there."""
    release = router.live.release
    assert release is not None
    needed: dict[str, set[str]] = {}
    for feed in release.feeds_into(wanted.table.name):
        for source in (feed.source, *feed.joins):
            verdict = router.verdicts.get(source)
            if verdict is None:
                return f"its feed reads {source}, which is dropped"
            if verdict.action == "keep":
                continue
            state = release.table(source)
            columns = {column for table, column in needs(feed.sql, _known(release)) if table == source}
            for column in sorted(columns):
                now = verdict.wanted.values.get(column) if verdict.wanted else None
                if state is not None and now == state.values.get(column):
                    continue
                if now is not None or verdict.rebuilt:
                    return f"its feed reads {source}.{column}, which means something else now"
                needed.setdefault(source, set()).add(column)
    for source, names in needed.items():
        router.exposed.setdefault(source, set()).update(names)
    return None


def _known(release: Release) -> Known:
    tables = {state.table.name: types(state.table.columns) for state in release.tables}
    relations = {state.table.name: physical(state.table.name, state.rows, state.values) for state in release.tables}
    return Known(tables, relations)


def _with_read(router: _Router, verdict: Verdict) -> Verdict:
    wanted, live, diff = verdict.wanted, verdict.live, verdict.diff
    if wanted is None or verdict.rebuilt:
        return verdict
    extra = tuple(sorted(router.exposed.get(verdict.name, ())))
    if wanted.table.kind == "landing":
        return replace(verdict, read=landing_read(wanted.table.columns, extra), exposed=extra)
    assert live is not None
    assert diff is not None
    if verdict.action == "keep" and not extra:
        return replace(verdict, read=live.read)
    picks = [*diff.picks, *(Pick(name, of=name) for name in extra)]
    return replace(verdict, read=compose(live.read, picks, wanted.read), exposed=extra)


def _why_computed(router: _Router, wanted: Wanted, live: TableState, diff: Diff) -> str:
    name, sources = wanted.table.name, _list(sorted({feed.source for feed in wanted.feeds}))
    if wanted.table.kind != live.table.kind:
        return f"{name} is now of kind {wanted.table.kind}: it is computed anew from {sources}"
    if not diff.rows:
        return f"which rows {name} holds changes (FROM, WHERE, JOIN or GROUP BY): history is re-read from {sources}"
    fresh = [column for column, why in diff.computed.items() if why.endswith(" is new")]
    others = [why for column, why in diff.computed.items() if column not in fresh]
    said = []
    if fresh:
        origin = sorted({f"{t}.{c}" for column in fresh for t, c in wanted.reads.get(column, frozenset())})
        kept = f", which {name} does not keep" if origin else ""
        verb = "is new and" if len(fresh) == 1 else "are new and"
        said.append(f"{_list(fresh)} {verb} computed from {_list(origin) or sources}{kept}")
    said += others
    return f"{'; '.join(said)}: history is re-read from {sources}"


def _why_metadata(diff: Diff) -> str:
    said = [f"{c.was} becomes {c.column}" for c in diff.columns if c.change == "renamed"]
    said += [f"{c.column} widens from {c.was}" for c in diff.columns if c.change == "type"]
    if constant := [pick.name for pick in diff.picks if pick.literal]:
        said.append(f"{_list(constant)} {_is(constant)} constant and supplied at read")
    if diff.hidden:
        said.append(f"{_list(diff.hidden)} {_is(diff.hidden)} hidden, not erased")
    return f"{', '.join([*said, *diff.settings])}: no row moves"


def _is(names: tuple[str, ...] | list[str]) -> Literal["is", "are"]:
    return "is" if len(names) == 1 else "are"


def _list(names: tuple[str, ...] | list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def by_action(verdicts: Mapping[str, Verdict]) -> tuple[Verdict, ...]:
    """Verdicts whose table gets a new version, sources first."""
    return tuple(verdict for verdict in verdicts.values() if verdict.rebuilt)
