"""A live feed of a release: one source version → one target version, moved range by range of the source's commits."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from console.agent.expectations import guard
from console.agent.expectations.failing import failing_rows, stopped_feed
from console.agent.failure import call_broke
from console.agent.feeds import app_ids, commit, exact_appends, ranges
from console.agent.feeds.health import Health
from console.agent.feeds.newest import placed
from console.agent.feeds.readings import Readings
from console.agent.query_over import query_over
from console.agent.rows.snapshot import stored_at
from console.agent.rows.unchanged import shown_unchanged
from console.agent.session_on_demand import opened
from console.agent.store import days, log, open_tables
from console.agent.store.added_columns import with_added
from console.agent.store.ledger import StoredRelease
from console.errors import ConsoleError, FeedStopped
from console.model import small_batch
from console.model.landing import RELAY
from console.model.live import Feed, Release, ReleaseState, TableState
from console.model.schema import quoted

RANGE_ROWS = 2_000_000
ONE_TASK_BYTES = 16 << 20
SMALL_ROWS = 10_000
_TOO_LARGE: set[str] = set()  # app ids of feeds whose larger ranges are not collected
_RANKS: tuple[ReleaseState, ...] = ("live", "preview", "previous", "retired")


@dataclass(slots=True, kw_only=True)
class LiveFeed:
    """A feed with the paths and states of its tables, and the progress it has made in this process.

    start  position at which a new feed is opened; -1 if the feed must exist already
    seen   last source version examined; the committed position may be behind it by commits without rows
    guarded  its target is being built, so rows that fail a `stop` expectation stop it; a live table accepts every row

    Only one thread moves a feed at a time: the build first, then the follower.
    """

    spec: Feed
    source: TableState
    target: TableState
    joins: tuple[tuple[TableState, str], ...]
    source_path: str
    target_path: str
    start: int = -1
    writer: commit.FeedWriter | None = None
    seen: int = -1
    guarded: bool = False
    rows_moved: int = 0
    health: Health = field(default_factory=Health)
    small_appends: bool | None = None  # whether the target supports them; None: not checked yet

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.source_path, self.target_path, self.spec.materialization)

    @property
    def app_id(self) -> str:
        return app_ids.live_id(self.target_path, self.spec, self.source_path)

    @property
    def own_query(self) -> str:
        """The query that an operator would correct, in words; "" for the one that feeds its target."""
        return f"the forward_query of {self.spec.target}" if self.spec.materialization == RELAY else ""

    def differs(self, other: "LiveFeed") -> bool:
        """Whether the other feed's release selects other commits of the same source version, or computes other rows from them."""
        ours, theirs = self.source, other.source
        return (self.spec.sql, ours.read, ours.table.on_rewrite) != (
            other.spec.sql,
            theirs.read,
            theirs.table.on_rewrite,
        )

    def open(self, session: Any) -> commit.FeedWriter:
        """Take the feed over with the next epoch; once per process."""
        if self.writer is None:
            source = open_tables.table_id(self.source_path)
            self.writer = commit.open_feed(session, self.app_id, self.target_path, self.start, source)
            self.seen = max(self.seen, self.writer.position)
        return self.writer

    def step(self, session: Any, end: int, rows_limit: int = RANGE_ROWS, readings: Readings | None = None) -> int:
        """Copy one range of commits, up to source version `end` at most.

        session   one, or a `SessionOnDemand`, which is opened if the range has rows
        readings  of other feeds that may copy the same range
        returns   source rows read, -1 if there was no new commit
        raises    FeedStopped before a commit that must not flow, or if the source ends before `seen`
        """
        writer = self.open(session)
        commits = ranges.next_range(self.source_path, self.seen, end, rows_limit, policy=self.source.table.on_rewrite)
        if commits is None:
            return -1
        moved = 0
        if commits.files:
            with nullcontext(readings) if readings else Readings() as planned:
                self._copy_range(opened(session), writer, commits, planned)
            moved = commits.rows
        self.seen = commits.last
        self.rows_moved += moved
        return moved

    def _copy_range(self, session: Any, writer: commit.FeedWriter, commits: ranges.Range, readings: Readings) -> None:
        join_pins = join_versions(self.joins)
        shown = shown_unchanged(self.source)
        appended = readings.rows(
            session, self.source_path, commits, self.target_path, foreign=self._foreign_columns(), columns=shown
        )
        computed = compute(session, self, appended, join_pins)
        checks = guard.row_checks(self.target) if self.guarded else ()
        rows = guard.guarded(computed, checks)
        bytes_read = sum(file.bytes for file in commits.files)
        if bytes_read < ONE_TASK_BYTES:
            rows = rows.coalesce(1)  # one small file and one task instead of several
        note = {
            "kind": "live",
            "feed": writer.app_id,
            "from": commits.first,
            "to": commits.last,
            "rows_in": commits.rows,
        }
        if commits.skipped:
            note["passed_over"] = list(commits.skipped)
        if join_pins:
            note["joins"] = join_pins
            note["joined"] = joined_paths(self.joins)
        try:
            if not self._collected(rows, writer, commits, note):
                commit.append(session, rows.selectExpr(*days.stored_columns(self.target)), writer, commits.last, note)
        except Exception as error:
            if not guard.refused(error):
                raise
            failing = tuple(failing_rows(computed, guard.stops(checks), self.target.table.time))
            commit_span = f"commits {commits.first} to {commits.last} of {self.spec.source}"
            raise stopped_feed(self.spec.target, commit_span, failing) from None

    def _collected(self, rows: Any, writer: commit.FeedWriter, commits: ranges.Range, note: dict[str, Any]) -> bool:
        """Append the rows of a range by collecting them, if they are few; False, with nothing written, if Spark has to write them.

        A range of more than `SMALL_ROWS` whose rows could not be collected is written by Spark, as are such ranges from then on
        while this process lasts: its query may make too many rows of one.
        """
        size = sum(file.bytes for file in commits.files)
        small = 0 <= commits.rows <= SMALL_ROWS and size < ONE_TASK_BYTES
        moderate = (
            0 <= commits.rows <= small_batch.ROWS and size <= small_batch.BYTES and writer.app_id not in _TOO_LARGE
        )
        if not (small or moderate) or not self._fits_small_append():
            return False
        if small:
            return commit.append_small(rows, writer, commits.last, note) is not None
        # Marked until it has gone well: collecting may cost the JVM its life. Then nothing more is asked of that JVM here: a write that it
        # does not answer would keep the table's lock.
        _TOO_LARGE.add(writer.app_id)
        try:
            done = commit.append_small(rows, writer, commits.last, note)
        except Exception as error:
            if not isinstance(error, ConsoleError) and not guard.refused(error):
                if call_broke(error):
                    raise
                return False
            _TOO_LARGE.discard(writer.app_id)
            raise
        _TOO_LARGE.discard(writer.app_id)
        return done is not None

    @contextmanager
    def dry_run(self, session: Any, version: int, joined: Mapping[str, int], sample: str = "") -> Iterator[Any]:
        """Rows that a live step would append for one source commit, readable within the context; nothing is written.

        sample  condition of the source rows that are taken; "" for all
        """
        policy = self.source.table.on_rewrite
        commits = ranges.next_range(self.source_path, version - 1, version, RANGE_ROWS, policy=policy)
        assert commits is not None
        with Readings() as readings:
            rows = readings.rows(session, self.source_path, commits, self.target_path)
            yield compute(session, self, rows.where(sample) if sample else rows, joined)

    def _foreign_columns(self) -> tuple[str, ...]:
        """Columns of a foreign source; none for a managed table."""
        table = self.source.table
        foreign = table.kind == "landing" and not table.managed
        return tuple(column.name for column in self.source.version.columns) if foreign else ()

    def _fits_small_append(self) -> bool:
        if self.small_appends is None:
            self.small_appends = exact_appends.supports_small_appends(self.target_path)
        return self.small_appends

    def heartbeat(self, session: Any) -> None:
        """Commit the position without rows, so that it stays close to the end of the source's log."""
        writer = self.open(session)
        if self.seen > writer.position:
            commit.heartbeat(session, writer, self.seen)

    def pending(self, end: int) -> tuple[int, int, float]:
        """Backlog up to `end`: commits with rows, rows, seconds. Read from the target's log if the feed is not open."""
        seen = self.seen if self.seen >= 0 else self.committed()
        return ranges.pending(self.source_path, seen, end) if end > seen >= 0 else (0, 0, 0.0)

    def committed(self) -> int:
        """Position in the target's log, or the start position of a new feed."""
        number = app_ids.live_number(self.target_path, self.spec, self.source_path)
        return self.start if number is None else app_ids.split(number)[1]


def stalled_targets(feeds: Iterable[LiveFeed]) -> dict[str, ConsoleError]:
    """Target path → error, for tables with a stalled feed and for all tables downstream of one.

    feeds  upstream before downstream
    """
    stalled: dict[str, ConsoleError] = {}
    for feed in feeds:
        if error := feed.health.standing or stalled.get(feed.source_path):
            stalled.setdefault(feed.target_path, error)
    return stalled


def downstream(top: LiveFeed, feeds: Iterable[LiveFeed]) -> tuple[str, ...]:
    """Logical tables downstream of a feed's target."""
    paths, names = {top.target_path}, dict[str, None]()
    for feed in feeds:
        if feed.source_path in paths:
            paths.add(feed.target_path)
            names[feed.spec.target] = None
    return tuple(names)


def compute(session: Any, feed: LiveFeed, stored: Any, joined: Mapping[str, int]) -> Any:
    """Target rows, in the target's stored columns, computed from stored rows of the source.

    stored  DataFrame with the source's stored columns
    joined  table → version, from `join_versions`
    """
    # Each name and each projection costs a live step some ten milliseconds: one that would change nothing is left out.
    as_shown = tuple(stored.columns) == shown_unchanged(feed.source)
    logical = stored if as_shown else logical_rows(session, feed.source, stored)
    frames = {feed.spec.source: logical, **joined_rows(session, feed.joins, joined)}
    columns = [column.name for column in feed.target.version.columns]
    rows = query_over(session, feed.spec.sql, frames)
    if feed.target.newest is not None:
        rows = placed(feed.target.newest, rows)
    return rows if rows.columns == columns else rows.selectExpr(*map(quoted, columns))


def logical_rows(session: Any, state: TableState, stored: Any) -> Any:
    """Stored rows as the release presents them: columns renamed, defaults filled in, partial states merged."""
    return query_over(session, state.read, {"stored": with_added(state, stored)})


def join_versions(joins: Iterable[tuple[TableState, str]]) -> dict[str, int]:
    """Joined table → its latest version. One commit reads these versions; its note records them, so that it can be recomputed."""
    return {state.table.name: log.latest_version(path) for state, path in joins}


def joined_paths(joins: Iterable[tuple[TableState, str]]) -> dict[str, str]:
    """Joined table → the path of its version as releases name it, since Delta versions are comparable only within one."""
    return {state.table.name: state.version.path for state, _ in joins}


def joined_rows(session: Any, joins: Iterable[tuple[TableState, str]], versions: Mapping[str, int]) -> dict[str, Any]:
    """Joined table → its rows as of a version, for `query_over`. versions: table → Delta version"""
    return {
        state.table.name: logical_rows(session, state, stored_at(session, path, versions[state.table.name]))
        for state, path in joins
    }


def live_feeds_of(release: Release, resolve: Callable[[str], str], *, guarded: bool = False) -> tuple[LiveFeed, ...]:
    """The release's feeds, upstream before downstream.

    resolve  version path → absolute path;  guarded: as of `LiveFeed`
    raises   FeedStopped E_CYCLE
    """
    by_name: Mapping[str, TableState] = {state.table.name: state for state in release.tables}
    ordered: list[LiveFeed] = []
    pending = list(release.feeds)
    filled = {name for name in by_name if not release.feeds_into(name)}
    while pending:
        ready, later = list[Feed](), list[Feed]()
        for spec in pending:
            (ready if spec.source in filled else later).append(spec)
        if not ready:
            raise FeedStopped(f"{release.id}: its feeds form a cycle", code="E_CYCLE", hint="console plan")
        for spec in ready:
            source, target = by_name[spec.source], by_name[spec.target]
            joins = tuple((by_name[name], resolve(by_name[name].version.path)) for name in spec.joins)
            ordered.append(
                LiveFeed(
                    spec=spec,
                    source=source,
                    target=target,
                    joins=joins,
                    source_path=resolve(source.version.path),
                    target_path=resolve(target.version.path),
                    guarded=guarded,
                )
            )
        pending = later
        pending_targets = {spec.target for spec in pending}
        filled |= {spec.target for spec in ready if spec.target not in pending_targets}
    return tuple(ordered)


def ranked(releases: Iterable[StoredRelease]) -> tuple[StoredRelease, ...]:
    """Releases in the order in which they feed a version that they share: live, preview, previous, retired."""
    return tuple(sorted(releases, key=lambda stored: _RANKS.index(stored.row.state)))


def feeds_to_follow(releases: Iterable[tuple[LiveFeed, ...]]) -> tuple[LiveFeed, ...]:
    """The feeds to follow of several releases, so that only one release feeds each version.

    Otherwise a table downstream of a rebuilt one would get every row twice, from both versions.

    releases  the feeds of each, in the order of `ranked`
    """
    owners: dict[str, int] = {}
    chosen = []
    for rank, live_feeds in enumerate(releases):
        for live_feed in live_feeds:
            if owners.setdefault(live_feed.target_path, rank) == rank:
                chosen.append(live_feed)
    return tuple(chosen)


def relay_feeds(source: Release, target: Release, resolve: Callable[[str], str]) -> tuple[LiveFeed, ...]:
    """The feeds from landing versions of one release to those of another; () if they have the same ones.

    Each reads exactly the rows that its target lacks: it begins at the position set by a promotion or rollback, or,
    into a version that is being built, after the fence of its history.

    resolve  version path → absolute path
    """
    feeds = []
    for relay in target.relays:
        older, newer = _at(source, relay.older), target.table(relay.table)
        if older and newer:
            feeds.append(_relay_feed(relay.table, relay.forward, older, newer, resolve))
    for relay in source.relays:
        older, newer = _at(target, relay.older), source.table(relay.table)
        if older and newer:
            columns = replace(older.version, columns=relay.columns)
            target_state = replace(older, version=columns)
            feeds.append(_relay_feed(relay.table, relay.backward, newer, target_state, resolve))
    return tuple(feeds)


def followed_with(
    live: Release | None, release: Release, resolve: Callable[[str], str], *, guarded: bool = False
) -> tuple[LiveFeed, ...]:
    """The feeds of a kept release, preceded by those that relay new rows from live landing versions to its own."""
    own = live_feeds_of(release, resolve, guarded=guarded)
    return (*relay_feeds(live, release, resolve), *own) if live is not None else own


def _at(release: Release, path: str) -> TableState | None:
    return next((state for state in release.tables if state.version.path == path), None)


def _relay_feed(
    table: str, sql: str, source: TableState, target: TableState, resolve: Callable[[str], str]
) -> LiveFeed:
    # moved: its app id names both tables, so that each direction has a position of its own between any two versions
    spec = Feed(materialization=RELAY, source=table, target=table, sql=sql, moved=True)
    return LiveFeed(
        spec=spec,
        source=replace(source, read="SELECT * FROM stored"),
        target=target,
        joins=(),
        source_path=resolve(source.version.path),
        target_path=resolve(target.version.path),
    )
