"""The keys, states and filtered groups of a wanted aggregate that the stored states of a live one can supply.

Both must aggregate the same rows: the same FROM, and the wanted WHERE may add only conditions that are functions of the
live keys, which have one value in all rows of a group. Then

- a wanted key that is a function of the live keys puts each live group into one wanted group: the states of these
groups, united, are those of all their rows, since states unite in any order and grouping (`planning/sql/states`);
- a wanted state that means the same as a stored one is that state, regardless of its name;
- a state over a wider type is the stored one, cast: all values fitted the narrower type, since a value or a sum that
does not fit stops its batch (ANSI).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from console.model.live import Feed, TableState
from console.planning.fingerprint import DesiredTable
from console.planning.reuse.proof import FeedQuery, certain_type
from console.planning.sql.compile import NameScope
from console.planning.sql.convert import kept
from console.planning.sql.relation import Relation, Value
from console.planning.sql.semantics import aggregates, relation_of
from console.planning.sql.syntax.argument import INTEGERS
from console.planning.sql.syntax.flat import conjuncts, merged
from console.planning.sql.tree import DIALECT, cast, kind, name, render

# the finest first; the boundaries of each are also boundaries of the ones before it
_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "QUARTER", "YEAR")
_SPELLED = {"MM": "MONTH", "MON": "MONTH", "YYYY": "YEAR", "YY": "YEAR", "DD": "DAY"}
_WIDENED = (exp.Sum, exp.Min, exp.Max, exp.Count)
_PLACE = "_"
Columns = frozenset[tuple[str, str]]  # (table, column)


@dataclass(frozen=True, slots=True)
class StoredState:
    """A wanted state's stored name in the live version. wider: the stored state has a narrower type, or is computed over one"""

    name: str
    wider: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The parts of a wanted aggregate that the live version supplies.

    keys      wanted key → SQL over the live version's stored columns
    states    wanted state → the stored one
    filters   conditions over stored columns that only the wanted query has
    lost_keys, lost_states  wanted ones that the live version cannot supply
    same_groups  the wanted keys are the live ones, one to one, and no group is dropped
    sliceable    the live version's rows can be cut by the table's time
    """

    keys: Mapping[str, str]
    states: Mapping[str, StoredState]
    filters: tuple[str, ...] = ()
    lost_keys: tuple[str, ...] = ()
    lost_states: tuple[str, ...] = ()
    same_groups: bool = False
    sliceable: bool = False

    @property
    def whole(self) -> bool:
        return not self.lost_keys and not self.lost_states

    @property
    def served(self) -> bool:
        """Whether the stored rows are the wanted ones, regardless of the columns computed at read."""
        return self.whole and self.same_groups and not any(state.wider for state in self.states.values())


@dataclass(frozen=True, slots=True)
class _Partial:
    """A feed of an aggregate: its query without WHERE and GROUP BY, its conditions, keys and states."""

    query: FeedQuery
    keys: Mapping[str, exp.Expr]
    states: Mapping[str, exp.Expr]
    conditions: tuple[exp.Expr, ...]

    @classmethod
    def of(cls, feed: Feed, known: NameScope) -> "_Partial | None":
        tree = sqlglot.parse_one(feed.sql, read=DIALECT)
        flat = merged(tree) or tree
        if not isinstance(flat, exp.Select) or any(
            flat.args.get(key) for key in ("distinct", "having", "limit", "qualify")
        ):
            return None
        parts = {part.alias_or_name.lower(): part.unalias() for part in flat.expressions}
        states = {column: part for column, part in parts.items() if aggregates(part)}
        keys = {column: part for column, part in parts.items() if column not in states}
        where = flat.args.get("where")
        bare = flat.copy()
        for clause in ("where", "group"):
            bare.set(clause, None)
        bare.set("expressions", [exp.alias_(part.copy(), name(column)) for column, part in keys.items()])
        return cls(FeedQuery(feed, bare, known), keys, states, tuple(conjuncts(where.this)) if where else ())

    def only_plain(self, widened: Columns) -> "_Partial":
        """Without keys and states whose value may change with a column's wider type. Safe are the column itself, and
        its sum, minimum, maximum and count."""
        if not widened:
            return self
        parts = {**self.keys, **self.states}
        touched = {
            column for column, node in parts.items() if any(value.reads & widened for value in self.value([node]))
        }
        fine = {column for column in touched if _is_plain(parts[column])}
        keys = {column: node for column, node in self.keys.items() if column not in touched - fine}
        states = {column: node for column, node in self.states.items() if column not in touched - fine}
        return _Partial(self.query, keys, states, self.conditions)

    def value(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        return self.query.value(nodes)[0] if nodes else []

    def rows(self, condition: exp.Expr | None = None) -> Relation:
        probe = self.query.tree.copy()
        probe.set("expressions", [exp.alias_(exp.Literal.number(1), _PLACE)])
        if condition is not None:
            probe.set("where", exp.Where(this=condition.copy()))
        return relation_of(probe, self.query.known.relations)


def _is_plain(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, _WIDENED) and not inner.expressions:
        inner = inner.this
    return isinstance(inner, exp.Column)


def kept_groups(
    wanted: DesiredTable,
    live: TableState,
    feeds: Iterable[Feed],
    *,
    now: NameScope,
    was: NameScope,
    widened: Columns = frozenset(),
) -> Kept | None:
    """The parts of a wanted aggregate that a live one supplies; None if it holds other rows.

    feeds     of the live table: each wanted feed needs a counterpart there, and all must yield the same result
    now, was  the sources as wanted and as live
    widened   source columns with the same numbers in a wider type, whose meaning in `now` is the one in `was`
    """
    if {wanted.table.kind, live.table.kind} != {"aggregate"}:
        return None
    old = {(feed.materialization, feed.source): feed for feed in feeds}
    if {(feed.materialization, feed.source) for feed in wanted.feeds} != old.keys():
        return None
    matches: list[Kept] = []
    for feed in wanted.feeds:
        new = _Partial.of(feed, now)
        before = _Partial.of(old[(feed.materialization, feed.source)], was)
        if new is None or before is None or (one := _kept(wanted, live, new, before, widened)) is None:
            return None
        matches.append(one)
    return matches[0] if matches and all(one == matches[0] for one in matches) else None


def _kept(wanted: DesiredTable, live: TableState, new: _Partial, old: _Partial, widened: Columns) -> Kept | None:
    rows = new.rows(exp.and_(*(c.copy() for c in new.conditions)) if new.conditions else None)
    if new.rows().rows != old.rows().rows or rows.reads & widened:
        return None
    stored = _stored_keys(old)
    conditions = _more_conditions(new, old, stored)
    if conditions is None:
        return None
    new = new.only_plain(widened)
    given = {column: _over_keys(new, part, stored) for column, part in new.keys.items()}
    keys = {column: sql for column, sql in given.items() if sql}
    spelled = {column.name.lower(): column.name for column in wanted.columns}
    states = _states(wanted, live, new, old)
    bare = {sql: column for column, sql in keys.items()}
    one_to_one = len(bare) == len(wanted.keys) and bare.keys() == {_column(key) for key in old.keys}
    return Kept(
        keys={spelled[column]: sql for column, sql in keys.items()},
        states={spelled[column]: state for column, state in states.items()},
        filters=conditions,
        lost_keys=tuple(column for column in wanted.keys if column.lower() not in keys),
        lost_states=tuple(c.name for c in wanted.columns if c.name not in wanted.keys and c.name.lower() not in states),
        same_groups=one_to_one and not conditions,
        sliceable=_is_sliceable(live, old),
    )


def _is_sliceable(live: TableState, old: _Partial) -> bool:
    """Whether the table's time column is a stored key of the same name."""
    time = live.table.time
    if not time or time.lower() not in old.keys:
        return not time
    parts = sqlglot.parse_one(live.read, read=DIALECT).expressions
    shown = next(part.unalias() for part in parts if part.alias_or_name.lower() == time.lower())
    return isinstance(shown, exp.Column) and shown.name.lower() == time.lower()


def _column(stored: str) -> str:
    return render(exp.column(name(stored)))


def _stored_keys(old: _Partial) -> dict[str, str]:
    """Meaning of an expression → the stored key column that holds it."""
    nodes: list[exp.Expr] = []
    names: list[str] = []
    for column, node in old.keys.items():
        nodes.append(node)
        names.append(column)
        if isinstance(node, exp.Cast) and certain_type(node.this, old.query) == kind(node.to.sql(DIALECT)):
            nodes.append(node.this)  # a cast to its own type
            names.append(column)
    pairs = zip(old.value(nodes), names, strict=True)
    return {value.hash: column for value, column in pairs if not value.volatile}


def _over_keys(new: _Partial, node: exp.Expr, stored: Mapping[str, str]) -> str:
    """An expression over source rows, rewritten over the stored keys; "" if it is not a function of them."""
    if (
        node.find(exp.Query, exp.AggFunc, exp.Window, exp.UDTF, exp.Explode) is not None
        or new.value([node])[0].volatile
    ):
        return ""
    tree = node.copy()
    parts = [part for part in tree.walk() if isinstance(part, exp.Condition) and part.find(exp.Column) is not None]
    given: dict[int, exp.Expr] = {}
    for part, value in zip(parts, new.value(parts), strict=True):
        if column := stored.get(value.hash):
            given[id(part)] = exp.column(name(column))
        elif coarse := _coarser(new, part, stored):
            given[id(part)] = coarse
    mine: set[int] = set()

    def put(part: exp.Expr) -> exp.Expr:
        if (made := given.get(id(part))) is None:
            return part
        mine.update(map(id, made.find_all(exp.Column)))
        return made

    over = tree.transform(put, copy=False)
    return "" if any(id(column) not in mine for column in over.find_all(exp.Column)) else render(over)


def _coarser(new: _Partial, part: exp.Expr, stored: Mapping[str, str]) -> exp.Expr | None:
    """A time truncated to a unit, computed from a key that is truncated to a finer one."""
    if (finer := _finer(new, part)) is None:
        return None
    for value in new.value(finer):
        if column := stored.get(value.hash):
            coarse = part.copy()
            coarse.set("this", exp.column(name(column)))
            return coarse
    return None


def _finer(new: _Partial, part: exp.Expr) -> list[exp.Expr] | None:
    """The same time truncated to finer units; None for an expression that truncates no time."""
    match part:
        case exp.TimestampTrunc():
            written = part.args["unit"].name.upper()
            unit = _SPELLED.get(written, written)
        case exp.TsOrDsToDate():
            unit = "DAY"
        case exp.Cast() if kind(part.to.sql(DIALECT)) == "date":
            unit = "DAY"
        case _:
            return None
    if certain_type(part.this, new.query) not in ("timestamp", "timestamp_ntz"):
        return None
    return _cut(part.this, "DAY" if unit == "WEEK" else unit)


def _cut(time: exp.Expr, unit: str) -> list[exp.Expr]:
    """A time truncated to a unit and to all finer ones, as timestamps and, from DAY on, as a date."""
    if unit not in _UNITS:
        return []
    units = _UNITS[: _UNITS.index(unit) + 1]
    whole: list[exp.Expr] = [exp.TimestampTrunc(this=time.copy(), unit=exp.var(one)) for one in units]
    if "DAY" in units:
        whole.append(exp.TsOrDsToDate(this=time.copy(), safe=True))
        whole.append(cast(time.copy(), "date"))
    return whole


def _more_conditions(new: _Partial, old: _Partial, stored: Mapping[str, str]) -> tuple[str, ...] | None:
    """The wanted WHERE's additional conditions, over stored keys; None if the two differ in anything else."""
    was, now = ([one.rows(c).filters - one.rows().filters for c in one.conditions] for one in (old, new))
    live, wanted = (frozenset[str]().union(*each) for each in (was, now))
    if not live <= wanted:
        return None
    more = [c for c, hashes in zip(new.conditions, now, strict=True) if not hashes <= live]
    over = tuple(_over_keys(new, condition, stored) for condition in more)
    return over if all(over) else None


def _states(wanted: DesiredTable, live: TableState, new: _Partial, old: _Partial) -> dict[str, StoredState]:
    """Wanted states that are stored: with the same meaning, else in a narrower type or over one."""
    stored: dict[str, str] = {}
    for value, column in zip(old.value(list(old.states.values())), old.states, strict=True):
        stored.setdefault(value.hash, column)
    by_column: dict[str, StoredState] = {}
    spelled = {column.name.lower(): column.name for column in live.version.columns}
    own = {column: value.hash for column, value in zip(new.states, new.value(list(new.states.values())), strict=True)}
    same = {column: value.hash for column, value in zip(old.states, old.value(list(old.states.values())), strict=True)}
    for column, node in new.states.items():
        if same.get(column) == own[column]:
            by_column[column] = StoredState(spelled[column])
        elif own[column] in stored:
            by_column[column] = StoredState(spelled[stored[own[column]]])
        else:
            narrower = _narrower(node, old)
            hits = [stored[value.hash] for value in new.value(narrower) if value.hash in stored]
            if hits:
                by_column[column] = StoredState(spelled[hits[0]], wider=True)
    return by_column


def _narrower(node: exp.Expr, old: _Partial) -> list[exp.Expr]:
    """The same state in a narrower type, or computed from values cast to one."""
    if not isinstance(node, exp.Cast):
        return []
    call = node.this.this if isinstance(node.this, exp.Filter) else node.this
    if not isinstance(call, _WIDENED) or not isinstance(call.this, exp.Expr) or call.expressions:
        return []
    to = kind(node.to.sql(DIALECT))
    types_kept = {kind(part.to.sql(DIALECT)) for part in old.states.values() if isinstance(part, exp.Cast)}
    made: list[exp.Expr] = []
    for type in sorted(type for type in types_kept if type == to or _fits(type, to)):
        for argument in _narrower_arguments(call.this, old):
            one = node.copy()
            (one.this.this if isinstance(one.this, exp.Filter) else one.this).set("this", argument.copy())
            made.append(cast(one.this, type))
    return made


def _narrower_arguments(argument: exp.Expr, old: _Partial) -> list[exp.Expr]:
    """The argument, and the same cast to the live states' narrower types: a value that fits there is the same number."""
    plain = argument.unnest()
    if not isinstance(plain, exp.Cast):
        return [argument]
    to, narrow = kind(plain.to.sql(DIALECT)), set[str]()
    for state in old.states.values():
        narrow |= {kind(one.to.sql(DIALECT)) for one in state.find_all(exp.Cast)}
    return [argument, *(cast(plain.this.copy(), type) for type in sorted(narrow) if _fits(type, to))]


def _fits(type: str, to: str) -> bool:
    """Whether a value cast to `type` is the same number as cast to `to`, unless it has stopped its batch."""
    if kept(type, to) != "wider":
        return False
    if type in INTEGERS and to in INTEGERS:
        return True
    return type.startswith("decimal") and to.startswith("decimal") and type.rpartition(",")[2] == to.rpartition(",")[2]


def cuts_by_day(time_key: str, feed: Feed, known: NameScope, source_time: str) -> bool:
    """Whether a key and its source's time are on the same day in every row that has a time."""
    partial = _Partial.of(feed, known)
    if partial is None or (node := partial.keys.get(time_key.lower())) is None or not source_time:
        return False
    aliases = [alias for alias, table in partial.query.aliases().items() if table.lower() == feed.source.lower()]
    if len(aliases) != 1:
        return False
    time = exp.column(name(source_time), table=name(aliases[0]))
    bare = [time, *_cut(time, "DAY")]
    casts = [cast(one.copy(), type) for one in bare for type in ("date", "timestamp", "timestamp_ntz")]
    days = {value.hash for value in partial.value([*bare, *casts])}
    return partial.value([node])[0].hash in days
