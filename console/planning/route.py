"""Table by table, sources first: the cheapest exact way from the live release to the wanted one, and why."""

from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from console.errors import Problem
from console.model.live import Live, Release, TableState
from console.model.plan import Action, ColumnChange
from console.model.slices import EARLY, LATE
from console.planning.cache.same import Once, twin
from console.planning.desired import Desired, Wanted
from console.planning.diff import Diff, compare, same_declaration
from console.planning.routes import feeds, hybrid, words
from console.planning.routes.parts import Parts, kept_states, parts, saves
from console.planning.routes.prove import Proof, proven
from console.planning.routes.words import listed
from console.planning.sql.reads import Pick, compose, forward, landing_read, select, stored

REBUILT: frozenset[Action] = frozenset(("create", "forward", "replay", "hybrid"))
_proofs: Once[Proof] = Once(4096)
_unchanged: "Once[dict[str, Verdict]]" = Once(256)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one table.

    read      its read in the new release, where the live version stays
    forward   the query of a forward or of a hybrid's older half, else ""
    picks     columns that a read-time route computes from the others
    states    the forward copies an aggregate's partial states as they are
    boundary  first day of a hybrid's replayed half
    parts     an aggregate that keeps some states is copied, and replayed for the others
    filters   materializations that only filter more than before
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
    picks: tuple[Pick, ...] = ()
    states: bool = False
    boundary: str = ""
    parts: Parts | None = None
    filters: tuple[str, ...] = ()

    @property
    def copies(self) -> bool:
        """Its new version takes rows from the live one."""
        return self.action in ("forward", "hybrid") or self.parts is not None

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
    release = live.release
    same = _unchanged.of(lambda: _kept(desired, release), desired, release) if release else {}
    for name, wanted in desired.tables.items():
        if name in same:
            router.verdicts[name] = same[name]
            continue
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
    verdicts = {n: v if n in same else _with_read(router, v) for n, v in router.verdicts.items()}
    return verdicts, tuple(router.problems)


def _kept(desired: Desired, release: Release) -> dict[str, Verdict]:
    """Tables that nothing has touched, nor anything above them: the same for all regions of a release, whatever they hold."""
    same: dict[str, Verdict] = {}
    for name, wanted in desired.tables.items():
        live = release.table(name)
        if live is None or not same_declaration(wanted.table, live.table) or wanted.table.forward_query:
            continue
        diff = compare(wanted, twin(release).table(name) or live)
        above = feeds.of((*wanted.feeds, *release.feeds_into(name)))
        if diff.readable and diff.layout and _plain(diff) and not diff.settings and above <= same.keys():
            read = landing_read(wanted.table.columns) if wanted.table.kind == "landing" else live.read
            same[name] = Verdict(name, "keep", "unchanged", wanted, live, diff, read=read)
    return same


def _diff(router: _Router, wanted: Wanted, live: TableState) -> Diff:
    """The comparison, made once for all regions whose tables differ in nothing but the names of their versions."""
    release = router.live.release
    return compare(wanted, (twin(release).table(live.table.name) if release else None) or live)


def _landing(router: _Router, wanted: Wanted, live: TableState | None) -> Verdict:
    name, stats = wanted.table.name, router.live.table(wanted.table.name)
    if live is None:
        why = f"new; adopted where it stands, {stats.rows:,} rows" if stats else "new; managed, so an empty one is made"
        return Verdict(name, "create", why, wanted, None)
    diff = _diff(router, wanted, live)
    added = [column.name for column in wanted.table.columns if column.name in diff.computed]
    said = list(diff.settings)
    if added:
        said.insert(0, f"{listed(added)} added")
    if diff.hidden:
        said.insert(0, f"{listed(diff.hidden)} no longer read")
    if not said and same_declaration(wanted.table, live.table):
        return Verdict(name, "keep", "unchanged", wanted, live, diff)
    return Verdict(
        name, "metadata", f"{', '.join(said) or 'declaration'}: no row moves", wanted, live, diff, columns=diff.columns
    )


def _table(router: _Router, wanted: Wanted, live: TableState | None) -> Verdict:
    name = wanted.table.name
    if live is None:
        sources = listed(sorted({feed.source for feed in wanted.feeds}))
        return Verdict(name, "create", f"new: its history is computed from {sources}", wanted, None)
    diff = _diff(router, wanted, live)
    found = Verdict(name, "replay", "", wanted, live, diff, columns=diff.columns)
    moved = sorted({f.source for f in wanted.feeds if (v := router.verdicts.get(f.source)) and v.rebuilt})
    if moved and diff.readable and diff.layout and _moves_across(router, name):
        _forward_unused(router, wanted, live, "nothing of it has to be computed")
        also = "" if _plain(diff) and not diff.settings else f"; {words.metadata(diff)}"
        return replace(found, action="rebind", why=f"{words.rebound(name, moved)}{also}")
    if moved:
        why = f"its source {listed(moved)} is rebuilt, and positions in the old one say nothing about the new"
        _forward_unused(router, wanted, live, why)
        own = words.computed(wanted, live, diff, {}) if not diff.readable else "its own values are unchanged"
        return replace(found, why=f"{listed(moved)} is rebuilt and {name} is fed from its log; {own}")
    if not diff.readable:
        return _recomputed(router, found, wanted, live, diff)
    if not diff.layout or _reclustered(wanted, live):
        return _relaid(router, found, wanted, live, diff)
    assert router.live.release is not None
    if (lost := feeds.lost(name, router.live.release, router.verdicts, router.exposed)) is not None:
        return replace(found, why=lost)
    _forward_unused(router, wanted, live, "nothing of it has to be computed")
    if _plain(diff) and not diff.settings:
        return replace(found, action="keep", why="unchanged")
    return replace(found, action="metadata", why=words.metadata(diff))


def _plain(diff: Diff) -> bool:
    """Every column is read as it is stored, and none is hidden."""
    return not diff.hidden and all(pick.of == pick.name and not pick.type and not pick.fresh for pick in diff.picks)


def _moves_across(router: _Router, name: str) -> bool:
    """Whether the table's live feeds may go on from the rebuilt sources: what they read there is what it was."""
    release = router.live.release
    assert release is not None
    shaky = feeds.shaky(name, release, router.verdicts)
    return not shaky and feeds.lost(name, release, router.verdicts, router.exposed) is None


def _recomputed(router: _Router, found: Verdict, wanted: Wanted, live: TableState, diff: Diff) -> Verdict:
    """The live table cannot serve it: by the operator's query, by proof, by both halves, else from the source."""
    name = wanted.table.name
    if wanted.table.forward_query and (given := _given(router, found, wanted, live, diff)) is not None:
        return given
    proof = _prove(router, wanted, live, diff)
    if diff.rows and not proof.missing:
        return _proven(router, found, wanted, live, diff, proof)
    why = words.computed(wanted, live, diff, proof.missing)
    assert router.live.release is not None
    if not diff.rows:
        found = replace(
            found,
            filters=feeds.narrowed(
                wanted, twin(router.live.release), feeds.as_wanted(router.desired, feeds.of(wanted.feeds))
            ),
        )
    old = router.live.release.feeds_into(name)
    apart = parts(wanted, live, old, diff)
    if apart is not None and saves(apart, wanted, router.live, router.desired.tables):
        why = f"{why} for {'it' if len(apart.columns) == 1 else 'them'} alone, the other states are copied"
        return replace(found, why=why, forward=apart.copied, states=True, parts=apart)
    if diff.rows and diff.layout and len(wanted.feeds) == 1:
        source = wanted.feeds[0].source
        start = hybrid.boundary(wanted, live, router.desired.tables.get(source), router.live)
        picks = hybrid.older(wanted, diff, proof.given)
        if start and picks is not None:
            older = f"days before {start} are gone there and carried from the live {name} with the declared defaults"
            return replace(found, action="hybrid", why=f"{why}; {older}", forward=select(name, picks), boundary=start)
    return replace(found, why=why)


def _given(router: _Router, found: Verdict, wanted: Wanted, live: TableState, diff: Diff) -> Verdict | None:
    """The operator's forward query, where it may be used."""
    table = wanted.table
    if table.kind == "aggregate":
        message = f"{table.name} is an aggregate: merged results give no states back"
        hint = "drop forward_query: its history is re-read from its source"
        router.problems.append(Problem("C107", message, table.where, hint, node=table.name))
        return None
    if not diff.rows:
        _forward_unused(router, wanted, live, "other rows are wanted than it holds")
        return None
    if table.forward_query == live.table.forward_query:
        message = f"forward_query of {table.name} is stale: it made the release that is live, not this change"
        hint = "drop it, or write one for this change"
        router.problems.append(Problem("C109", message, table.where, hint, node=table.name))
    sql, problems = forward(table, live)
    router.problems += problems
    what = f"{listed(list(diff.computed))} computed from the live {table.name} by its forward_query"
    return replace(found, action="forward", why=what, forward=sql)


def _prove(router: _Router, wanted: Wanted, live: TableState, diff: Diff) -> Proof:
    """What lineage proves of the columns that must be computed; where other rows are wanted, nothing."""
    release = router.live.release
    impossible = {column: "" for column, why in diff.computed.items() if why.kind == "nullability"}
    if release is None or not diff.rows or impossible or wanted.table.kind != live.table.kind:
        return Proof({}, dict.fromkeys(diff.computed, "") | impossible)
    old = release.feeds_into(wanted.table.name)
    now = feeds.as_wanted(router.desired, feeds.of(wanted.feeds))
    was = feeds.as_live(release, feeds.of(old))
    return _proofs.of(lambda: proven(wanted, live, old, diff.computed, now=now, was=was), wanted, twin(release))


def _proven(router: _Router, found: Verdict, wanted: Wanted, live: TableState, diff: Diff, proof: Proof) -> Verdict:
    """Every missing column is a function of the table's own: copied with it, or read with it where that is allowed."""
    name = wanted.table.name
    made = {column: Pick(column, made=sql) for column, sql in proof.given.items()}
    by_name = {pick.name: pick for pick in diff.picks} | made
    picks = tuple(by_name[column.name] for column in wanted.table.columns)
    what = f"{listed(list(made))} {words.be(list(made))} proven to be computable from columns that {name} keeps"
    table = wanted.table
    soon = table.retention_days is not None and table.retention_days <= table.read_time_days
    free = diff.layout and not set(made) & {*table.partition_by, table.time}
    assert router.live.release is not None
    allowed = free and (table.backfill == "read" or soon)
    if allowed and feeds.lost(name, router.live.release, router.verdicts, router.exposed) is None:
        why = f"{what}; computed at read, no row moves{_expiry(router, wanted)}"
        return replace(found, action="read", why=why, picks=tuple(made.values()))
    return replace(found, action="forward", why=f"{what}: copied from the live {name}", forward=select(name, picks))


def _expiry(router: _Router, wanted: Wanted) -> str:
    """The day on which the last row that is stored today goes."""
    stats, keeps = router.live.table(wanted.table.name), wanted.table.retention_days
    days = sorted(day.day for day in stats.days if day.day) if stats else []
    if keeps is None or not days:
        return ""
    if days[-1] in (EARLY, LATE):
        return ""
    try:
        last = date.fromisoformat(days[-1]) + timedelta(keeps)
    except OverflowError:
        return ""
    return f"; the last row stored so far expires on {last.isoformat()}"


def _relaid(router: _Router, found: Verdict, wanted: Wanted, live: TableState, diff: Diff) -> Verdict:
    """Only the layout changes: the same rows, copied; of an aggregate, its partial states."""
    name = wanted.table.name
    if diff.layout:
        to = words.laid("clustered", wanted.table.cluster_by, live.table.cluster_by)
    else:
        to = words.laid("partitioned", wanted.table.partition_by, live.table.partition_by)
        unused = "only its layout changes, for which every column is taken as it is"
        _forward_unused(router, wanted, live, unused, harmless=True)
    if wanted.table.kind == "aggregate":
        kept = kept_states(wanted, live, [column.name for column in wanted.table.columns])
        if any(column.name.lower() not in kept for column in wanted.columns):
            return replace(found, why=f"{to}; partial states are computed anew")
        why = f"{to}: the same partial states, copied from the live {name}"
        return replace(found, action="forward", why=why, forward=stored(name, wanted.columns), states=True)
    why = f"{to}: the same rows, copied from the live {name}"
    return replace(found, action="forward", why=why, forward=select(name, diff.picks))


def _reclustered(wanted: Wanted, live: TableState) -> bool:
    """History is to be clustered as well: the operator asks for it by copying the table as it is."""
    new, old = wanted.table, live.table
    return new.cluster_by != old.cluster_by and new.forward_query != old.forward_query and _whole(new.forward_query)


def _whole(forward_query: str) -> bool:
    return forward_query.strip().upper().removeprefix("SELECT").strip() == "*"


def _forward_unused(router: _Router, wanted: Wanted, live: TableState, why: str, *, harmless: bool = False) -> None:
    """A forward query that does nothing: left over from the live release, the harmless `*`, or a mistake."""
    table, written = wanted.table, wanted.table.forward_query.strip()
    if not written:
        return
    if table.forward_query == live.table.forward_query:
        message = f"forward_query of {table.name} is left over from the release that is live: {why}"
        found = Problem("C109", message, table.where, "drop it", "warn", table.name)
    else:
        harmless = harmless or _whole(written)
        message = f"forward_query of {table.name} is not used: {why}"
        hint = "drop it once the change is live" if harmless else "drop it; here it may only be `SELECT *`"
        found = Problem("C108", message, table.where, hint, "warn" if harmless else "refuse", table.name)
    router.problems.append(found)


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
    order = {column.name: at for at, column in enumerate(wanted.table.columns)}
    picks = sorted([*diff.picks, *verdict.picks], key=lambda pick: order[pick.name])
    picks += [Pick(name, of=name) for name in extra]
    return replace(verdict, read=compose(live.read, picks, wanted.read), exposed=extra)
