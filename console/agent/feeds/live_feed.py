"""One live feed of one release: source version → target version, and how it moves by one range."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.agent.feeds import commit, ranges
from console.agent.resilience.health import Health
from console.agent.rows import log_excerpt
from console.agent.rows.snapshot import stored_at
from console.agent.store import days, log
from console.errors import ConsoleError, FeedStopped
from console.model.live import Feed, Release, TableState
from console.model.schema import quoted

RANGE_ROWS = 2_000_000
ONE_TASK_BYTES = 16 << 20
SMALL_ROWS = 10_000


@dataclass(slots=True)
class LiveFeed:
    """A feed with its places. `seen` is the source version looked at; the committed position may lag behind it over
    commits without rows. Only one thread at a time moves an edge: first the build, then the follower.
    """

    feed: Feed
    source: TableState
    target: TableState
    joins: tuple[tuple[TableState, str], ...]
    source_path: str
    target_path: str
    start: int = -1  # position to open at where the feed is new; -1: it must exist
    writer: commit.FeedWriter | None = None
    seen: int = -1
    rows_moved: int = 0
    health: Health = field(default_factory=Health)
    small: bool | None = None  # whether the target takes small appends; not asked yet

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.source_path, self.target_path, self.feed.materialization)

    @property
    def app_id(self) -> str:
        return commit.live_id(self.target_path, self.feed, self.source_path)

    def differs(self, other: "LiveFeed") -> bool:
        """Whether the other's release lets other commits flow between the same two versions, or makes other rows of them."""
        ours, theirs = self.source, other.source
        return (self.feed.sql, ours.read, ours.table.on_rewrite) != (
            other.feed.sql,
            theirs.read,
            theirs.table.on_rewrite,
        )

    def open(self, session: Any) -> commit.FeedWriter:
        """Take the feed over (epoch + 1), once a process."""
        if self.writer is None:
            source = log.table_id(self.source_path)
            self.writer = commit.open_feed(session, self.app_id, self.target_path, self.start, source)
            self.seen = max(self.seen, self.writer.position)
        return self.writer

    def step(self, session: Any, end: int, rows_limit: int = RANGE_ROWS) -> int:
        """Move by one range towards source version `end`; returns the rows that arrived, -1 if there was nothing to do.

        raises  FeedStopped in front of what must not flow, or where the source ends before what was looked at
        """
        writer = self.open(session)
        part = ranges.next_range(self.source_path, self.seen, end, rows_limit, policy=self.source.table.on_rewrite)
        if part is None:
            return -1
        moved = 0
        if part.files:
            with log_excerpt.place(self.target_path) as scratch:
                self._carry(session, writer, part, scratch)
            moved = part.rows
        self.seen = part.last
        self.rows_moved += moved
        return moved

    def _carry(self, session: Any, writer: commit.FeedWriter, part: ranges.Range, scratch: Path) -> None:
        joined = pinned(self.joins)
        out = compute(session, self, ranges.read(session, self.source_path, part, scratch, self._foreign()), joined)
        size = sum(file.bytes for file in part.files)
        if size < ONE_TASK_BYTES:
            out = out.coalesce(1)  # one small file and one task instead of several
        note = {"kind": "live", "feed": writer.app_id, "from": part.first, "to": part.last, "rows_in": part.rows}
        if part.skipped:
            note["passed_over"] = list(part.skipped)
        if joined:
            note["joins"] = joined
        small = 0 <= part.rows <= SMALL_ROWS and size < ONE_TASK_BYTES and self._takes_small()
        if not (small and commit.append_small(out, writer, part.last, note)):
            commit.append(session, out.selectExpr(*days.stored(self.target)), writer, part.last, note)

    @contextmanager
    def dry(self, session: Any, version: int, joined: Mapping[str, int]) -> Iterator[Any]:
        """What a live step would append for one commit of the source, to be read inside; nothing is written."""
        policy = self.source.table.on_rewrite
        part = ranges.next_range(self.source_path, version - 1, version, RANGE_ROWS, policy=policy)
        assert part is not None
        with log_excerpt.place(self.target_path) as scratch:
            yield compute(session, self, ranges.read(session, self.source_path, part, scratch), joined)

    def _foreign(self) -> tuple[str, ...]:
        """Columns of a source that others write."""
        table = self.source.table
        theirs = table.kind == "landing" and not table.managed
        return tuple(column.name for column in self.source.version.columns) if theirs else ()

    def _takes_small(self) -> bool:
        if self.small is None:
            self.small = commit.takes_small(self.target_path)
        return self.small

    def heartbeat(self, session: Any) -> None:
        """Commit the position reached over commits without rows, so that it is never far behind the log."""
        writer = self.open(session)
        if self.seen > writer.position:
            commit.heartbeat(session, writer, self.seen)

    def pending(self, end: int) -> tuple[int, int, float]:
        """Commits with rows, rows, and seconds behind `end`; told from the log where the feed was not opened yet."""
        seen = self.seen if self.seen >= 0 else self.committed()
        return ranges.pending(self.source_path, seen, end) if end > seen >= 0 else (0, 0, 0.0)

    def committed(self) -> int:
        """The position in the target's log, or where the feed is to open."""
        number = log.position(self.target_path, self.app_id)
        return self.start if number is None else commit.split(number)[1]


def standing(edges: Iterable[LiveFeed]) -> dict[str, ConsoleError]:
    """Tables whose rows end too early, since a feed of theirs stands still or one above it: target path → why.

    edges  sources before what hangs below them
    """
    found: dict[str, ConsoleError] = {}
    for edge in edges:
        if why := edge.health.standing or found.get(edge.source_path):
            found.setdefault(edge.target_path, why)
    return found


def below(top: LiveFeed, edges: Iterable[LiveFeed]) -> tuple[str, ...]:
    """Logical tables that hang below what a feed fills."""
    reached, names = {top.target_path}, dict[str, None]()
    for edge in edges:
        if edge.source_path in reached:
            reached.add(edge.target_path)
            names[edge.feed.target] = None
    return tuple(names)


def compute(session: Any, edge: LiveFeed, stored: Any, joined: Mapping[str, int]) -> Any:
    """The rows of the target, in its stored columns, that these stored rows of the source give.

    stored  a DataFrame with the source's stored columns
    joined  as `pinned` gave it
    """
    logical(session, edge.source, stored).createOrReplaceTempView(edge.feed.source)
    register(session, edge.joins, joined)
    columns = [quoted(column.name) for column in edge.target.version.columns]
    return session.sql(edge.feed.sql).selectExpr(*columns)  # as SQL: each call into the JVM costs a live step time


def logical(session: Any, state: TableState, stored: Any) -> Any:
    """Stored rows as the release shows them: renames, defaults, merged states."""
    stored.createOrReplaceTempView("stored")
    return session.sql(state.read)


def pinned(joins: Iterable[tuple[TableState, str]]) -> dict[str, int]:
    """Joined table → the version at which one commit reads it; its note keeps them, so that it can be computed again."""
    return {state.table.name: log.latest_version(path) for state, path in joins}


def register(session: Any, joins: Iterable[tuple[TableState, str]], joined: Mapping[str, int]) -> None:
    """Joined tables as views, each at its version in `joined`."""
    for state, path in joins:
        rows = stored_at(session, path, joined[state.table.name])
        logical(session, state, rows).createOrReplaceTempView(state.table.name)


def live_feeds_of(release: Release, resolve: Callable[[str], str]) -> tuple[LiveFeed, ...]:
    """The release's feeds with their places, sources before what hangs below them.

    resolve  version path → absolute path
    """
    by_name: Mapping[str, TableState] = {state.table.name: state for state in release.tables}
    ordered: list[LiveFeed] = []
    waiting = list(release.feeds)
    placed = {name for name in by_name if not release.feeds_into(name)}
    while waiting:
        ready = [feed for feed in waiting if feed.source in placed]
        if not ready:
            raise FeedStopped(f"{release.id}: its feeds form a circle", code="E_CYCLE", hint="console plan")
        for feed in ready:
            source, target = by_name[feed.source], by_name[feed.target]
            joins = tuple((by_name[name], resolve(by_name[name].version.path)) for name in feed.joins)
            ordered.append(
                LiveFeed(feed, source, target, joins, resolve(source.version.path), resolve(target.version.path))
            )
        waiting = [feed for feed in waiting if feed not in ready]
        pending_targets = {feed.target for feed in waiting}
        placed |= {feed.target for feed in ready if feed.target not in pending_targets}
    return tuple(ordered)
