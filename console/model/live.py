"""The state of a region: its releases with their versions and feeds, and its tables' statistics from the Delta logs."""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Literal

from console.model.codec import BESIDE, QUIET, needed
from console.model.created import TableSettings
from console.model.expectation import ExpectationCheck
from console.model.merging import Merging
from console.model.newest import Newest
from console.model.pipeline import Copy, Endpoint, Sink
from console.model.schema import Column, Table
from console.model.sources import Sources
from console.record import dataclass

ReleaseState = Literal["preview", "live", "previous", "retired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One physical table behind a logical name.

    content  hash of its fingerprints and layout; releases with the same content share a version
    path     relative to the warehouse (`requests/3fa2c1d09b-4`), or absolute for a table elsewhere; "" before it is built
    columns  as stored, in order; an aggregate's are its keys and states
    settings the `delta.*` properties at its creation; () in releases of 0.1.0 and for landing tables
    """

    content: str
    path: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    settings: TableSettings = field(default=(), metadata=BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The states of an aggregate's feed that cannot be reproduced bit by bit, and a row's addends to its sums.

    keys      group columns;  sums  states that are sums of doubles;  sketches  states that are sketches
    volatile  states that a second computation may not reproduce (now(), rand())
    moments   states of variances and correlations: a number of values, means, and sums of squares about them
    sql       over the feed's views: `keys`, and a row's addend under the name of each of `sums`; "" for none
    """

    keys: tuple[str, ...]
    sums: tuple[str, ...] = ()
    sketches: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    sql: str = ""
    moments: tuple[str, ...] = field(default=(), metadata=BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A feed: source version → target version.

    sql    compiled Spark SQL over views named like the logical tables that it reads (`source` and `joins`); its output is
           the target's stored columns, by name: for an aggregate, keys and partial states
    joins  logical tables, each read at one pinned version per commit
    moved  its target was first filled from another version of the source; its position refers to the current one
    terms  of an aggregate; None in releases of older consoles
    """

    materialization: str
    source: str
    target: str
    sql: str
    joins: tuple[str, ...] = ()
    moved: bool = field(default=False, metadata=QUIET)
    terms: Terms | None = field(default=None, metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Intake:
    """The storage of line values for one column of a managed landing table.

    stored  stored columns, narrowest type first: a value is written to each that is needed to read it back
    """

    column: str
    stored: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table of a release.

    read    compiled Spark SQL over a view named `stored`: the logical columns (renames, defaults, merged states)
    rows    the rows fingerprint;  values  column → value fingerprint (docs/design.md, how a plan is decided)
    inexact columns whose values may differ between two computations (sketches, sums of doubles, now(), rand()); also stored
            ones that are not shown
    carried columns of which older rows were copied and do not follow the feeds, by the operator's choice
    intake  of a managed landing table; () if each column is stored under its own name
    unmarked names and storage of lines without the `accepts` marker or name, which have the previous shape
    newest  of a table that keeps one row of each key: how stored rows are merged
    older   names and storage of older shapes, which lines may use until `accepts_until`
    checks  compiled expectations on its rows
    renamed column → the stored one that it shows unchanged, where these have different names; of landing tables see `intake`
    merging of an aggregate: how its stored rows of one key become one; None where that is not known for all of them
    """

    table: Table
    version: Version
    read: str
    rows: str
    values: dict[str, str]
    inexact: tuple[str, ...] = ()
    intake: tuple[Intake, ...] = field(default=(), metadata=needed("0.2.0"))
    older: tuple[Intake, ...] = field(default=(), metadata=BESIDE)
    carried: tuple[str, ...] = field(default=(), metadata=BESIDE)
    unmarked: tuple[Intake, ...] = field(default=(), metadata=BESIDE)
    newest: Newest | None = field(default=None, metadata=needed("0.2.0"))
    checks: tuple[ExpectationCheck, ...] = field(default=(), metadata=BESIDE)
    renamed: dict[str, str] = field(default_factory=dict, metadata=BESIDE)
    merging: Merging | None = field(default=None, metadata=BESIDE)

    def stored_in(self, column: str) -> tuple[str, ...]:
        """The stored columns of a column; its own name if it is computed from others."""
        kept = (self.renamed.get(column, column),)
        return next((each.stored for each in self.intake if each.column == column), kept)

    @property
    def stored_time(self) -> str:
        """The stored column of the time column; "" without one."""
        return self.stored_in(self.table.time)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """The conversion of a managed landing table's rows between two of its versions, for as long as both are kept.

    table     its name in the release that has the newer version;  older: path of the other version
    forward   compiled Spark SQL over a view named `table` of the older version's stored rows: the newer one's columns
    backward  the same from the newer version to the older
    columns   stored columns of the older version that `backward` fills
    lost      columns with values that the older version cannot hold
    keys      columns of the newer one whose absence identifies a line of the older shape
    """

    table: str
    older: str
    forward: str
    backward: str
    columns: tuple[Column, ...]
    lost: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def stored_alike(self) -> bool:
        """Whether both versions store every row in the same columns."""
        return self.forward == self.backward


@dataclass(frozen=True, kw_only=True)
class Release:
    """An immutable manifest: all definitions, the version behind each name, and the feeds that keep the versions current.

    id      `r7`; "" in a plan that no region has accepted yet
    digest  of the desired pipeline that it was made from
    endpoints, copies, sinks  their SQL is compiled, over logical names
    rules   version of the rules by which its fingerprints were hashed; "" in releases of 0.1.0
    sources the files that it was made from, as written; None in releases of 0.1.0
    relays  of landing tables that have a new version in it
    """

    id: str
    pipeline: str
    digest: str
    tables: tuple[TableState, ...]
    feeds: tuple[Feed, ...]
    endpoints: tuple[Endpoint, ...] = ()
    copies: tuple[Copy, ...] = ()
    sinks: tuple[Sink, ...] = ()
    tool: str = ""
    rules: str = field(default="", metadata=BESIDE)
    sources: Sources | None = field(default=None, metadata=BESIDE)
    relays: tuple[Relay, ...] = field(default=(), metadata=needed("0.2.0"))

    def table(self, name: str) -> TableState | None:
        return self._by_name.get(name)

    def accepting_until(self, days: Mapping[str, str]) -> "Release":
        """The release with changed days from which landing tables refuse lines of older shapes. days: table → day or "" """
        tables = tuple(
            replace(
                state, table=replace(state.table, accepts_until=days.get(state.table.name, state.table.accepts_until))
            )
            for state in self.tables
        )
        return replace(self, tables=tables)

    def feeds_into(self, name: str) -> tuple[Feed, ...]:
        return self._by_target.get(name, ())

    @cached_property
    def _by_name(self) -> dict[str, TableState]:
        return {state.table.name: state for state in reversed(self.tables)}

    @cached_property
    def _by_target(self) -> dict[str, tuple[Feed, ...]]:
        by_target: dict[str, list[Feed]] = {}
        for feed in self.feeds:
            by_target.setdefault(feed.target, []).append(feed)
        return {target: tuple(feeds) for target, feeds in by_target.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One row of the release table. at: seconds since 1970, UTC; digest: of the pipeline that it was made from"""

    id: str
    state: ReleaseState
    at: float = 0.0
    by: str = ""
    host: str = ""
    digest: str = field(default="", metadata=QUIET)


@dataclass(frozen=True, slots=True)
class Day:
    """One day (UTC) of a table, from file statistics.

    day    `2026-11-07`, or "" for rows whose time is NULL
    exact  False if files span days and the rows were divided in proportion
    """

    day: str
    rows: int
    bytes: int
    exact: bool = True


# reader features of tables that `agent/rows/appended` and Delta's own reader support
READABLE = frozenset(
    (
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    )
)


@dataclass(frozen=True, kw_only=True)
class TableStats:
    """One table's statistics from its Delta log, read without Spark. version: Delta version as of which they were read

    rows        without those deleted by deletion vectors
    properties  the table's `delta.*` settings, sorted; other properties may be confidential
    reader      features required of readers; with one that is not in `READABLE`, all other fields may be empty
    uncounted   files without statistics: their rows are not counted anywhere
    finer       of a landing table: columns with times finer than a microsecond in one of its newest files
    """

    name: str
    path: str
    version: int
    rows: int
    bytes: int
    files: int
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    days: tuple[Day, ...] = ()
    features: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    reader: tuple[str, ...] = field(default=(), metadata=BESIDE)
    uncounted: int = field(default=0, metadata=BESIDE)
    finer: tuple[str, ...] = field(default=(), metadata=BESIDE)


@dataclass(frozen=True, kw_only=True)
class Live:
    """One region's survey of one pipeline: the planner's whole input from it.

    release          the live manifest, or None in a region without one
    stats            tables of the live release and the requested landing tables; missing ones are not listed
    rows_per_second  measured in the region's last batches; 0 if nothing was measured
    spark            version of its agent's Spark; "" if that is not known
    """

    region: str
    pipeline: str
    release: Release | None
    releases: tuple[ReleaseRow, ...] = ()
    stats: tuple[TableStats, ...] = ()
    rows_per_second: float = 0.0
    free_bytes: int = 0
    spark: str = field(default="", metadata=BESIDE)

    def table(self, name: str) -> TableStats | None:
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, TableStats]:
        return {stats.name: stats for stats in reversed(self.stats)}
