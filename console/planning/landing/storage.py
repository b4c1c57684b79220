"""Storage of a landing table in a release: a widened column, or one that reuses a name, gets a stored column of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.model.landing import numbered_name, wider_name
from console.model.live import Intake, TableState, TableStats
from console.model.schema import Column, Table
from console.planning.diff import Diff
from console.planning.landing.forward_query import Continued, continued
from console.planning.sql.aggregates import STORED
from console.planning.sql.reads import landing_read, projections
from console.planning.sql.tree import DIALECT, cast, kind, name, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """read, intake, older, unmarked as in `TableState`; added: stored columns that the real table must get"""

    read: str
    intake: tuple[Intake, ...] = ()
    older: tuple[Intake, ...] = ()
    unmarked: tuple[Intake, ...] = ()
    added: tuple[Column, ...] = ()


def stored(
    table: Table, live: TableState | None, stats: TableStats | None, diff: Diff | None, exposed: Sequence[str] = ()
) -> Storage:
    """How the new release stores a landing table.

    live, stats  its state in the live release, and the real table; None if there is none
    exposed      live columns that unchanged feeds still read under their old names
    """
    if not table.managed:
        return Storage(read=landing_read(table.columns, exposed))
    if stats is None:  # the table will be created with the declared columns
        return replace(_Columns(table, None, None, None, exposed).storage(), added=())
    return _Columns(table, live, stats, diff, exposed).storage()


class _Columns:
    def __init__(
        self,
        table: Table,
        live: TableState | None,
        stats: TableStats | None,
        diff: Diff | None,
        exposed: Sequence[str],
    ) -> None:
        self._table, self._live = table, live
        self._real = {column.name.lower(): column for column in stats.columns} if stats else {}
        self._picks = {pick.name: pick for pick in diff.picks} if diff else {}
        self._exposed = exposed
        self._read = projections(live.read) if live else {}
        continuation = continued(table, live) if live else Continued()
        self._computed, self._distinguished = continuation.computed, continuation.distinguished
        self._added: list[Column] = []
        self._taken = {part.lower() for pick in self._picks.values() if live for part in live.stored_in(pick.of)}

    def storage(self) -> Storage:
        shown: dict[str, exp.Expr] = {}
        intake: list[Intake] = []
        for column in self._table.columns:
            if column.name in self._distinguished:
                value, places = self._computed_from_older(column)
            elif column.name in self._picks:
                value, places = self._continued(column)
            elif column.name in self._computed:
                value, places = self._computed_from_older(column)
            else:
                value, places = self._fresh(column)
            shown[column.name] = value
            intake.append(Intake(column.name, places))
        for old in self._exposed:
            shown[old] = self._read.get(old.lower(), exp.Null()).copy()
        plain = all(each.stored == (each.column,) for each in intake)
        return Storage(
            read=_select(shown),
            intake=() if plain else tuple(intake),
            older=self._older(),
            unmarked=self._unmarked(),
            added=tuple(self._added),
        )

    def _unmarked(self) -> tuple[Intake, ...]:
        """Storage for lines of the previous shape, as long as `accepts` distinguishes them from lines of this one."""
        if self._live is None or self._table.accepts is None:
            return ()
        if self._table.accepts == self._live.table.accepts:
            return self._live.unmarked
        own = {
            column.name: Intake(column.name, self._live.stored_in(column.name)) for column in self._live.table.columns
        }
        return tuple({**{each.column: each for each in self._live.older}, **own}.values())

    def _older(self) -> tuple[Intake, ...]:
        """Columns that are no longer declared, which older lines may still use; `accepts_until` can be set later, too."""
        if self._live is None:
            return ()
        own = [Intake(column.name, self._live.stored_in(column.name)) for column in self._live.table.columns]
        older = self._live.older if self._live.table.accepts_until else ()
        known = {each.column: each for each in (*older, *own)}
        return tuple(each for name, each in sorted(known.items()) if self._table.column(name) is None)

    def _continued(self, column: Column) -> tuple[exp.Expr, tuple[str, ...]]:
        """A column that continues a live one; a widened one gets a second stored column for values that only the wider
        type holds."""
        assert self._live is not None
        pick = self._picks[column.name]
        value, places = self._read[pick.of.lower()].copy(), self._live.stored_in(pick.of)
        if not pick.type:
            return value, places
        wide = self._place(wider_name(places[0], kind(column.type)), column.type)
        value = exp.Coalesce(this=exp.column(name(wide)), expressions=[cast(value, column.type)])
        return value, (*places, wide)

    def _computed_from_older(self, column: Column) -> tuple[exp.Expr, tuple[str, ...]]:
        """The value from the line, or, where the line has none, the forward query over the older columns."""
        assert self._live is not None
        older = self._live.stored_in(column.name) if self._live.table.column(column.name) else ()
        self._taken |= {part.lower() for part in older}
        wish = wider_name(older[0], kind(column.type)) if older else column.name
        place = self._place(wish, column.type)
        older = () if column.name in self._distinguished else older  # a line's shape decides which one stores it
        computed = sqlglot.parse_one(self._computed[column.name], read=DIALECT).transform(self._as_read)
        value = exp.Coalesce(this=exp.column(name(place)), expressions=[computed])
        return value, (*older, place)

    def _as_read(self, node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=self._read[node.name.lower()].copy()) if isinstance(node, exp.Column) else node

    def _fresh(self, column: Column) -> tuple[exp.Expr, tuple[str, ...]]:
        """A new column: stored under its own name, unless that stores the values of another one."""
        place = self._place(column.name, column.type)
        value: exp.Expr = exp.column(name(place))
        if column.default is not None:
            default = cast(sqlglot.parse_one(column.default, read=DIALECT), column.type)
            value = exp.Coalesce(this=value, expressions=[default])
        return value, (place,)

    def _place(self, wish: str, type: str) -> str:
        """A stored column for a value: a free one of this name and type, or a new one."""
        names = (wish, *(numbered_name(wish, number) for number in range(2, len(self._real) + 3)))
        for place in names:
            real = self._real.get(place.lower())
            if place.lower() in self._taken or (real is not None and _other(real, type)):
                continue
            self._taken.add(place.lower())
            if real is None:
                self._added.append(Column(name=place, type=type))
            return place
        raise AssertionError(f"more names than columns: {wish}")


def _other(real: Column, type: str) -> bool:
    try:
        return kind(real.type) != kind(type)
    except ValueError:
        return True


def _select(shown: Mapping[str, exp.Expr]) -> str:
    parts = [_named(value, as_) for as_, value in shown.items()]
    return render(exp.select(*parts).from_(exp.to_table(STORED)))


def _named(value: exp.Expr, as_: str) -> exp.Expr:
    same = isinstance(value, exp.Column) and value.name == as_
    return value if same else exp.alias_(value, name(as_))
