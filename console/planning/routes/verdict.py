"""The verdict of one table: its route, the reason, and the input of its steps and price."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from console.errors import Problem
from console.model.live import Feed, TableState
from console.model.plan import ACTIONS, Action, ColumnChange
from console.planning.diff import Diff
from console.planning.fingerprint import DesiredTable
from console.planning.landing.conversion import Conversion
from console.planning.landing.storage import Storage
from console.planning.sql.reads import Pick
from console.remedy import Remedy, SetKey


@dataclass(frozen=True, slots=True)
class LiveCopy:
    """Rows that the new version copies from the live one.

    sql     over the live table; "" if it could not be built, and the plan is refused
    until   first day that is not copied, "" if all are
    states  the query copies an aggregate's partial states as they are
    linked  the live version's files become files of the new one, without a copy; the query is then only for the price
    """

    sql: str
    until: str = ""
    states: bool = False
    linked: bool = False


@dataclass(frozen=True, slots=True)
class Recomputation:
    """Rows that the new version computes from the sources, by the queries of its feeds.

    since    first day that is computed, "" if all are
    queries  materialization → a query instead of the feed's: NULL for the states that are copied
    """

    since: str = ""
    queries: Mapping[str, str] = field(default_factory=dict)

    @property
    def completes_states(self) -> bool:
        """Whether copied and computed rows of a key merge into one."""
        return bool(self.queries)

    def query(self, feed: Feed) -> str:
        return self.queries.get(feed.materialization, feed.sql)


@dataclass(frozen=True, slots=True)
class Impossible:
    """Why a choice for a table's history cannot be taken, with the operator's remedies.

    first  the first day that `since` could name instead, "" for none
    """

    why: str
    remedies: tuple[Remedy, ...] = ()
    first: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One choice for the rows that a table holds. history: as `--history` takes it"""

    history: str
    made: "Verdict | Impossible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of one table.

    copied, recomputed  where a new version's rows come from
    read      its read in the new release, if the live version or its files are kept
    picks     columns that a read-time route computes from the others
    filters   materializations that only filter more than before
    needs     source → live columns that it must still show, since the table's feeds are kept
    exposed   live columns that its own read must still show, since a kept feed reads them
    storage   of a landing table that changes: where its columns are stored
    conversion  of a landing table that gets a new version with other values
    layout    of a landing table that gets a new version: the stored columns by which it is partitioned
    problems  problems of and notes on the operator's `forward_query` or `history`
    states_read  of an aggregate, the wanted read over the live version's stored states, "" if their names are unchanged
    older     values of the days that the sources have lost;  remedy  the declaration that avoids a refusal
    places    of a table of rows whose files are taken over: column → where it is stored
    history   the operator's choice, if taken;  older_rows: the values of older rows;  carried: columns of
              which older rows do not follow the query;  older_until: the day on which the last of these rows expires
    alternatives  the choices for its history, this verdict's among them; () if there is nothing to choose
    may_be_carried  `history: carry` would be possible instead;  may_be_given: a `forward_query` would be used
    """

    name: str
    action: Action
    why: str
    wanted: DesiredTable | None = None
    live: TableState | None = None
    diff: Diff | None = None
    columns: tuple[ColumnChange, ...] = ()
    copied: LiveCopy | None = None
    recomputed: Recomputation | None = None
    read: str = ""
    picks: tuple[Pick, ...] = ()
    filters: tuple[str, ...] = ()
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    exposed: tuple[str, ...] = ()
    storage: Storage | None = None
    conversion: Conversion | None = None
    layout: tuple[str, ...] | None = None
    problems: tuple[Problem, ...] = ()
    states_read: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    older: str = ""
    remedy: SetKey | None = None
    history: str = ""
    older_rows: str = ""
    older_until: str = ""
    carried: tuple[str, ...] = ()
    may_be_carried: bool = False
    may_be_given: bool = False
    alternatives: tuple[Alternative, ...] = ()

    @property
    def is_landing(self) -> bool:
        return self.wanted is not None and self.wanted.table.kind == "landing"

    @property
    def changes(self) -> bool:
        return ACTIONS[self.action].changes

    @property
    def rebuilt(self) -> bool:
        """Whether it gets a new version that must be filled."""
        if not ACTIONS[self.action].rebuilds or self.wanted is None:  # most tables are kept, and this is asked often
            return False
        return self.copied is not None or not self.is_landing

    @property
    def shows_older(self) -> bool:
        """Whether it can still show live columns under their old names."""
        return not self.rebuilt or (self.is_landing and self.conversion is None)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of a whole plan. tables: sources first, dropped ones last"""

    tables: Mapping[str, Verdict]

    def follows_log(self, feed: Feed) -> bool:
        """Whether a feed begins at the log of a source that is rebuilt, whose positions say nothing about the live one's."""
        return feed.source in self.tables and self.tables[feed.source].rebuilt
