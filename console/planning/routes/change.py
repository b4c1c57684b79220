"""One table, wanted and live, with the verdicts of its sources: the input of every route."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from console.errors import Problem
from console.model.live import Live, Release, TableState
from console.model.schema import HistoryChoice, Table
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.cache.releases import shared_release
from console.planning.diff import Diff
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.landing.conversion import Conversion, conversion
from console.planning.landing.new_version import Relaid, relaid
from console.planning.reuse import groups, live_feeds, regroup
from console.planning.reuse.groups import Kept
from console.planning.reuse.live_feeds import Continuation
from console.planning.reuse.narrower import Narrower, narrower
from console.planning.reuse.proof import Proof, proven
from console.planning.routes.verdict import Verdict
from console.planning.sql.reads import Pick
from console.remedy import DropKey

_PROOFS = Memo[Proof]()
_NARROWER = Memo[tuple[Narrower | None]]()
_GROUPS = Memo[tuple[Kept | None]]()


@dataclass(frozen=True, kw_only=True)
class Change:
    """A table that is both wanted and live.

    diff      between the two
    release   the live one
    verdicts  at least of all upstream tables
    choice    the operator's choice of history, None for `all`;  chosen_now: made on the command line, not in its file
    """

    wanted: DesiredTable
    live: TableState
    diff: Diff
    release: Release
    desired: Desired
    region: Live
    verdicts: Mapping[str, Verdict]
    cache: PlannerCache
    choice: HistoryChoice | None = None
    chosen_now: bool = False

    @property
    def name(self) -> str:
        return self.wanted.table.name

    @property
    def is_landing(self) -> bool:
        return self.wanted.table.kind == "landing"

    @cached_property
    def rebuilt_sources(self) -> tuple[str, ...]:
        sources = {feed.source for feed in self.wanted.feeds}
        return tuple(sorted(name for name in sources if name in self.verdicts and self.verdicts[name].rebuilt))

    @cached_property
    def feeds(self) -> Continuation:
        """Whether the table's live feeds can continue, and the source columns that they need for it."""
        return live_feeds.continuation(self.name, self.release, self.verdicts, self.cache)

    @cached_property
    def relaid(self) -> bool:
        """Its history needs another layout."""
        return not self.diff.layout or self._reclustered

    @property
    def _reclustered(self) -> bool:
        """History must be clustered as well: the operator requests it by a forward query of `*`."""
        new, old = self.wanted.table, self.live.table
        copied = new.forward_query != old.forward_query and _whole(new.forward_query)
        return copied and new.cluster_by != old.cluster_by

    @cached_property
    def groups(self) -> Kept | None:
        """The wanted keys and states that an aggregate's stored states can supply; None if it holds other rows, and for
        other kinds."""
        wanted, live = self.wanted, self.live
        if {wanted.table.kind, live.table.kind} != {"aggregate"}:
            return None
        old, names = self.release.feeds_into(self.name), live_feeds.of(wanted.feeds)
        was = live_feeds.as_live(self.release, live_feeds.of(old))
        now, widened = live_feeds.as_wanted_but_wider(self.desired, self.release, names)
        return self.cache.by_identity(
            _GROUPS,
            lambda: (groups.kept_groups(wanted, live, old, now=now, was=was, widened=widened),),
            wanted,
            shared_release(self.release, self.cache),
        )[0]

    @cached_property
    def reread(self) -> tuple[Pick, ...] | None:
        """Columns of an aggregate that can be read in a new way from the live version's states; None if not all of them can."""
        diff = self.diff
        anew = [*(pick.name for pick in diff.picks if pick.fresh), *diff.computed]
        if not anew:
            return ()
        unprovable = any(why.kind == "nullability" for why in diff.computed.values())
        if unprovable or not self._keys_kept or self.groups is None or not self.groups.served:
            return None
        return tuple(Pick(name=column, of=column, fresh=True) for column in anew)

    @property
    def _keys_kept(self) -> bool:
        return self.diff.rows and not any(key in self.diff.computed for key in self.wanted.keys)

    @property
    def states_read(self) -> str:
        """The wanted read, over the state names of the live version."""
        return regroup.read_over(self.wanted.read, self.groups) if self.reread and self.groups is not None else ""

    @cached_property
    def readable(self) -> bool:
        """The live version can serve every wanted column: each is stored, constant, or read of stored states."""
        if self.wanted.table.kind != "aggregate":
            return self.diff.readable
        return self.diff.rows and self.wanted.table.kind == self.live.table.kind and self.reread is not None

    @cached_property
    def landing_layout(self) -> Relaid | None:
        """A change of a managed landing table's partitioning."""
        return relaid(self.wanted.table, self.live, self.region.table(self.name)) if self.is_landing else None

    @cached_property
    def conversion(self) -> Conversion | None:
        """A change of a managed landing table's values that only a new version can store."""
        return conversion(self.wanted.table, self.live) if self.is_landing else None

    @property
    def stays(self) -> bool:
        """The live version serves everything that is wanted, and its feeds continue."""
        if self.is_landing and self.conversion is not None:
            return bool(self.conversion.why)
        if self.is_landing:
            return self.landing_layout is None or bool(self.landing_layout.why)
        served = self.readable and not self.relaid and not self.rebuilt_sources
        return served and not self.feeds.broken

    @cached_property
    def proof(self) -> Proof:
        """The columns to compute that lineage proves to be functions of stored ones; none if other rows are wanted."""
        wanted, live, computed = self.wanted, self.live, self.diff.computed
        impossible = {column: "" for column, why in computed.items() if why.kind == "nullability"}
        if not self.diff.rows or impossible or wanted.table.kind != live.table.kind:
            return Proof({}, dict.fromkeys(computed, "") | impossible)
        old = self.release.feeds_into(self.name)
        now = live_feeds.as_wanted(self.desired, live_feeds.of(wanted.feeds))
        was = live_feeds.as_live(self.release, live_feeds.of(old))
        return self.cache.by_identity(
            _PROOFS,
            lambda: proven(wanted, live, old, computed, now=now, was=was),
            wanted,
            shared_release(self.release, self.cache),
        )

    @cached_property
    def narrower(self) -> Narrower | None:
        """Selection of the wanted rows from the stored ones; None if some may be missing or cannot be distinguished."""
        wanted, computed = self.wanted, self.diff.computed
        if self.diff.rows or any(why.kind == "nullability" for why in computed.values()):
            return None
        release = shared_release(self.release, self.cache)
        return self.cache.by_identity(_NARROWER, lambda: (self._narrower(computed),), wanted, release)[0]

    def _narrower(self, columns: Iterable[str]) -> Narrower | None:
        old = self.release.feeds_into(self.name)
        now = live_feeds.as_wanted(self.desired, live_feeds.of(self.wanted.feeds))
        was = live_feeds.as_live(self.release, live_feeds.of(old))
        return narrower(self.wanted, self.live, old, columns, now=now, was=was)

    def leaves_out_keys(self) -> bool:
        """Whether a table of the newest rows holds other rows only because a filter leaves out some keys, whatever becomes of
        its columns."""
        newest = self.wanted.table.key and not self.wanted.table.is_distinct
        return bool(newest) and not self.diff.rows and self._narrower(()) is not None

    def unused_forward_query(self, why: str, *, harmless: bool = False) -> tuple[Problem, ...]:
        """C107, C108 or C109 for a forward query without effect: left over from the live release, a harmless `*`, or a
        mistake."""
        table, written = self.wanted.table, self.wanted.table.forward_query.strip()
        if not written:
            return ()
        if table.forward_query == self.live.table.forward_query:
            message = f"forward_query of {table.name} is left over from the release that is live: {why}"
            return (_unused(table, "C109", message),)
        if table.kind == "aggregate":
            message = f"forward_query of {table.name} is not used: merged results give no states back; {why}"
            return (_unused(table, "C107", message),)
        harmless = harmless or _whole(written)
        message = f"forward_query of {table.name} is not used: {why}"
        if harmless:
            return (_unused(table, "C108", message, "once the change is live"),)
        return (_unused(table, "C108", message, "here it may only be `SELECT *`", severity="refuse"),)

    def unused_for_layout(self) -> tuple[Problem, ...]:
        """The same if only the layout changes; a forward query that requests the clustering is used."""
        if self.diff.layout:
            return ()
        why = "only its layout changes, for which every column is taken as it is"
        return self.unused_forward_query(why, harmless=True)


def _unused(table: Table, code: str, message: str, effect: str = "", *, severity: str = "warn") -> Problem:
    remedies = (DropKey(node=table.name, key="forward_query", effect=effect),)
    return Problem(code=code, message=message, where=table.where, severity=severity, node=table.name, remedies=remedies)


def _whole(forward_query: str) -> bool:
    return forward_query.strip().upper().removeprefix("SELECT").strip() == "*"
