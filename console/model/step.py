"""The steps of a plan, in order. `explain` prints the list that the agent executes."""

from dataclasses import field
from typing import Literal

from console.model.codec import BESIDE, QUIET, needed
from console.model.recorded_call import PlannedCall
from console.model.schema import Column
from console.model.step_id import BACKFILL, CATCH_UP, PROMOTE, VALIDATE, StepId
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Create the new, empty version of one table; its columns and layout are in the plan's release."""

    table: str

    @property
    def id(self) -> str:
        return str(StepId("create", self.table))


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Add nullable columns to a managed landing table that both releases share, by a metadata commit."""

    table: str
    columns: tuple[Column, ...]

    @property
    def id(self) -> str:
        return str(StepId("alter", self.table))


@dataclass(frozen=True, slots=True)
class Fragile:
    """Rows whose values fail to convert: a condition over the source's columns, and the columns that identify a row."""

    predicate: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Copy history into one new version, batch by batch, from a fenced source.

    route   replay: `sql` is the feed's, and whose source resolves in the new release (a table that is not rebuilt)
            forward: `sql` reads the live version of the table itself; each feed then continues from the position which
            that version had reached at the fence
    time    the source's raw time column; "" without one (one slice)
    stored  a forward over the stored rows (an aggregate's partial states) instead of the rows as queried
    since, until  the halves of a hybrid, by day: a forward ends before `until` and includes rows without a time; a
            replay begins with `since`, as of the landing position of that forward's fence; "" is unbounded
    states  a replay of some states of an aggregate, as of the landing position of the fence of the forward that copies
            the others
    linked  a forward of all rows whose files become files of the new version: no row is read, nothing is written. `sql`
            is only for the price of a copy
    rows, bytes, days, batches  estimates from the log's statistics
    columns  columns of the source that are read
    fragile  the rows on which it fails; None without such a condition
    second_spark  its batches run on the region's second Spark (`model.region.BackfillSpark`)
    """

    materialization: str  # "" for a forward, which covers all feeds of the table
    source: str
    target: str
    route: Literal["replay", "forward"]
    sql: str
    time: str
    rows: int
    bytes: int
    days: int
    batches: int
    stored: bool = False
    since: str = ""
    until: str = ""
    columns: tuple[str, ...] = ()
    fragile: Fragile | None = field(default=None, metadata=QUIET)
    states: bool = field(default=False, metadata=QUIET)
    linked: bool = field(default=False, metadata=needed("0.2.0"))
    second_spark: bool = field(default=False, metadata=QUIET)

    @property
    def id(self) -> str:
        return str(StepId(BACKFILL, self.target, self.materialization))

    @property
    def query_name(self) -> str:
        """The query that an operator would correct, in words."""
        own = f"the forward_query of {self.target}, or " if self.route == "forward" else ""
        return f"{own}the query that feeds {self.target}"


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Open the live feed of a new version and move it to the end of its source's log.

    start  fence: right after the fence of its backfill · log: from version 0 of its rebuilt source's log ·
           vector: from the positions that the live version had reached at the fence of a forward
    """

    materialization: str
    source: str
    target: str
    start: Literal["fence", "log", "vector"]

    @property
    def id(self) -> str:
        return str(StepId(CATCH_UP, self.target, self.materialization))


@dataclass(frozen=True, slots=True)
class Pair:
    """One column of the live table and of the new one, to be compared; `exact` False allows a tolerance."""

    old: str
    new: str
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of the old and the new version of one rebuilt table at the same landing position, per day.

    pairs     columns whose value fingerprint is unchanged: they must be equal
    left_out  (column, why it cannot be compared)
    keys      an aggregate's group columns; () compares per day by checksum
    other_rows  the new version is meant to have other rows: their numbers are shown, but do not decide
    ties      ties may be broken differently: differences of values do not decide
    joins     tables whose current contents history was joined with: differences do not decide
    changed   columns that are meant to change, among those left out; `old` is "" for a new one
    """

    table: str
    pairs: tuple[Pair, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    time: str = ""
    other_rows: bool = field(default=False, metadata=BESIDE)
    joins: tuple[str, ...] = field(default=(), metadata=BESIDE)
    ties: bool = field(default=False, metadata=BESIDE)
    changed: tuple[Pair, ...] = field(default=(), metadata=BESIDE)

    def old_name(self, column: str) -> str:
        """The live table's name of a compared column."""
        return next((pair.old for pair in self.pairs if pair.new == column), column)


@dataclass(frozen=True, slots=True)
class Validate:
    """Run the comparisons and recorded calls, and check that every rebuilt feed is live."""

    comparisons: tuple[Comparison, ...]
    calls: tuple[PlannedCall, ...] = field(default=(), metadata=BESIDE)

    @property
    def id(self) -> str:
        return str(VALIDATE)


@dataclass(frozen=True, slots=True)
class Promote:
    """Wait at the gate; once it is opened, make the new release live in one commit."""

    @property
    def id(self) -> str:
        return str(PROMOTE)


Step = CreateTable | AddColumns | Backfill | CatchUp | Validate | Promote
