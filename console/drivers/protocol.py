"""The runner's interface to a region, implemented for local regions, SSH regions and the fake."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from console.model.codec import QUIET
from console.model.compared import ComparedPage, DayExamples
from console.model.consent import Declaration
from console.model.event import Promoted, Recorded, RolledBack
from console.model.fleet import FleetWaves
from console.model.live import Live, Release, ReleaseRow
from console.model.load import EventRun, LoadState
from console.model.measured import FeedSample
from console.model.plan import Plan
from console.model.receipt import AuditProgress, Finding, Past
from console.model.region import Region
from console.model.sandbox import Sandbox
from console.model.status import Status, Verb
from console.model.tuning import Tuning


@dataclass(frozen=True, slots=True)
class Who:
    """Identity of the caller: `ada@laptop` and the host's name. Recorded, never trusted for access."""

    name: str
    host: str
    console: str = ""  # id of a console that controls rollouts: once another takes them over, its actions are refused


@dataclass(frozen=True, slots=True)
class RegionState:
    """The current state of one pipeline in one region. `plan` is the accepted plan of the current rollout.

    attended  whether an agent runs there; else the state was read from the region's logs
    """

    status: Status
    plan: Plan | None
    releases: tuple[ReleaseRow, ...]
    attended: bool = field(default=True, metadata=QUIET)

    @property
    def live(self) -> str:
        return next((row.id for row in self.releases if row.state == "live"), "")

    @property
    def live_row(self) -> ReleaseRow | None:
        return next((row for row in self.releases if row.state == "live"), None)

    @property
    def digest(self) -> str:
        """Digest of the pipeline that the live release was made from; "" if none is live, or from an older agent."""
        return next((row.digest for row in self.releases if row.state == "live"), "")

    @property
    def previous(self) -> str:
        return next((row.id for row in self.releases if row.state == "previous"), "")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Rows of a query: columns are (name, Spark type); rows hold JSON values."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    release: str
    truncated: bool = False


class Driver(Protocol):
    """One region. Every call may raise `Unreachable` (safe to repeat); repeating a request has no further effect."""

    region: Region

    async def survey(self, pipeline: str, landing: Sequence[str]) -> Live:
        """The region's state from its Delta logs; starts no JVM and needs no running agent.

        raises  DataError if the warehouse is not a directory or holds foreign `_console` data
        """
        ...

    async def state(self, pipeline: str) -> RegionState:
        """Status and order of promotions, without starting an agent."""
        ...

    async def history(self, pipeline: str, rollout: str = "") -> Past:
        """All rollouts stored in the region, and one of them in full. From its tables, without starting an agent."""
        ...

    async def compared(self, pipeline: str, rollout: str, after: int = 0) -> ComparedPage:
        """A page of the records of a rollout's comparison, one per day and column; without starting an agent.

        after  start of the page, from the previous page
        """
        ...

    async def examples(self, pipeline: str, table: str, day: str) -> DayExamples:
        """Some rows of one day that are in one version of a table and not in the other: live and preview, or previous
        and live. Reads both tables, starting an agent if none runs; nothing is stored.

        raises  DataError for an unknown table or day; RegionError E_ONE_VERSION, E_GONE
        """
        ...

    async def samples(self, pipeline: str, hours: float, feed: str | None = "") -> tuple[FeedSample, ...]:
        """Rates and lag of the last hours, oldest first, without starting an agent; () from a region that stores none.

        feed  "" for the pipeline's own, None for those of all feeds as well
        """
        ...

    async def verify(
        self, pipeline: str, rollout: str, tell: Callable[[AuditProgress], None] | None = None
    ) -> tuple[Finding, ...]:
        """Verify a rollout's receipts; reads its tables, starting an agent if none runs.

        Cancelling the call cancels the audit in the region, even within a check; an older agent finishes it.

        tell    called with progress reports; never by an older agent
        raises  DataError if the region knows no such rollout
        """
        ...

    async def start_agent(self) -> None:
        """Start an agent if none runs: it resumes the work of the last one."""
        ...

    async def accept(self, plan: Plan, who: Who, *, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        """Submit the plan; the region stores it and executes it on its own up to the gate. Starts an agent if none runs.

        fleet    the waves that it is part of, stored with it
        returns  the rollout's id, `web-7`; the same id if this very plan is already running
        raises   Conflict if the live release is not the plan's, or another rollout is in progress
        """
        ...

    def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
        """Events of the current rollout: stored ones with seq > after first, then live ones, without end.

        who     shown to the other consoles while this one watches; None to watch without a name
        raises  Unreachable when the link is lost
        """
        ...

    async def take_over(self, pipeline: str, who: Who) -> Status:
        """Take control of the rollout in progress; the previous console is notified, and its actions are refused.

        raises  Conflict where nothing is under way
        """
        ...

    async def maintain(self, pipeline: str, who: Who, request: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Compact, expire and vacuum the region's managed tables; returns the actions, each with `table`, `what` and `detail`."""
        ...

    async def control(self, pipeline: str, verb: Verb, who: Who) -> Status:
        """raises Conflict if the state does not permit the verb"""
        ...

    async def tune(self, pipeline: str, change: Tuning, who: Who, *, reset: bool = False) -> Status:
        """Change limits of the rollout from its next batch on; the query must already be compiled.

        reset   return to the plan's limits first
        raises  Conflict where nothing is under way; DataError E_RANGE
        """
        ...

    async def note(self, pipeline: str, text: str, who: Who) -> Status:
        """Store a note with the pipeline's newest rollout, in any state.

        raises  DataError E_RANGE for an empty or too long one; Conflict if there has been no rollout
        """
        ...

    async def declare(self, pipeline: str, rollout: str, declared: Declaration, who: Who) -> Status:
        """Store what a person declares at a rollout's gate. An older agent refuses the request.

        declared  without `by` and `host`, which are the caller's
        raises    as `agent.rollout.declared.declare`
        """
        ...

    async def accept_until(self, pipeline: str, release: str, days: Mapping[str, str], who: Who) -> dict[str, str]:
        """Change the days from which landing tables of the live release refuse lines of older shapes. Returns the changed tables.

        days    table → `2026-12-24`, "" for until the cleanup
        raises  Conflict E_STALE if another release is live; DataError
        """
        ...

    async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
        """Open the gate: one commit. `live` is the release that the caller believes to be live.

        raises  Conflict naming who promoted, from where and when, if it is not; CheckFailed if validation did not pass
        """
        ...

    async def rollback(self, pipeline: str, live: str, who: Who) -> RolledBack: ...

    async def cleanup(
        self,
        pipeline: str,
        who: Who,
        *,
        dry_run: bool = False,
        previous: bool = False,
        let_go: Sequence[str] = (),
        hold: float = 0.0,
    ) -> tuple[str, ...]:
        """Drop versions that no kept release names; with `previous`, also the release that a rollback would return to;
        for the landing tables `let_go`, also versions with values or rows that no other one has. Returns paths.

        hold  hours for which the previous release is only put on hold, to be dropped then; 0: at once
        """
        ...

    async def restore(self, pipeline: str, who: Who) -> str:
        """Make the release on hold the previous one again. Returns its id.

        raises  Conflict E_NO_HOLD, E_HOLD
        """
        ...

    async def preview(self, plan: Plan, who: Who, *, name: str, days: int, hours: float, live: bool = False) -> Sandbox:
        """Build a sandbox of a plan beside live, with the newest days of rebuilt tables. Returns once the build has begun.

        One of that name and the same change is kept for longer; one of another change is replaced.

        hours   until it is dropped
        live    rows that arrive after its fence flow into its tables; an older agent refuses it by name
        raises  DataError E_PREVIEW, E_PREVIEW_NAME; Conflict E_STALE
        """
        ...

    async def preview_release(self, pipeline: str, name: str) -> Release:
        """The manifest of a sandbox. raises  DataError E_NO_PREVIEW"""
        ...

    async def drop_preview(self, pipeline: str, name: str, who: Who) -> tuple[str, ...]:
        """Drop a sandbox; returns the paths of its versions. raises  DataError E_NO_PREVIEW"""
        ...

    async def query(
        self,
        pipeline: str,
        sql: str,
        tables: Sequence[str],
        args: Mapping[str, tuple[str, str]],
        limit: int,
        *,
        release: str = "",
    ) -> QueryResult:
        """Run checked SQL over logical tables of the live release, or of a sandbox.

        args     name → (value as text, Spark type)
        release  name of a sandbox
        """
        ...

    async def run(
        self, pipeline: str, kind: Literal["copy", "sink"], name: str, who: Who, run: str = "", *, release: str = ""
    ) -> dict[str, Any]:
        """Run one copy or sink of the live release: {"rows": n, "path": …}, a copy once per `run` id, and "already": bool.

        release  name of a sandbox, whose copy is run and writes there
        """
        ...

    async def ingest(
        self, pipeline: str, table: str, batch: str, lines: Sequence[str], run: EventRun | None = None, shape: str = ""
    ) -> dict[str, Any]:
        """Append NDJSON lines to a managed landing table: {"rows": n, "already": bool}.

        shape   name of their shape, if the table's `accepts` distinguishes lines by it
        run     the lines' place in their file, by which they are deduplicated; without it, by `batch` id
        raises  DataError naming the line that does not fit; Conflict E_LOAD_MOVED, E_SCHEMA_MOVED: read the state again
                and resend
        """
        ...

    async def check(
        self, pipeline: str, table: str, lines: Sequence[str], at: Sequence[tuple[int, int]], shape: str = ""
    ) -> str:
        """Validate lines of a file as `ingest` would, without writing.

        at       (first line, number of lines) of every contiguous piece
        returns  id of the schema that they fit, to be sent with them
        raises   DataError naming the line that does not fit
        """
        ...

    async def landed(
        self, pipeline: str, table: str, load: str, first: str, *, named: bool, batch: str = "", after: int = 0
    ) -> LoadState:
        """The progress of loads that a file may belong to; only of `load` if a person `named` it."""
        ...

    async def marks(self, pipeline: str, table: str, load: str, rows: int) -> bytes:
        """The marks of the events of the commit that brought a load to `rows` rows; b"" if they are gone."""
        ...

    async def stop(self) -> None:
        """End the region's agent, if one runs; the next one resumes its work."""
        ...

    async def close(self) -> None:
        """Close the link; the agent continues."""
        ...
