"""The disk of a fake region: it outlives every agent and every console."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from console.drivers.protocol import Who
from console.errors import Conflict
from console.model.event import Event, Recorded
from console.model.held_release import HeldRelease
from console.model.live import Live, Release, ReleaseRow, ReleaseState, TableState, TableStats
from console.model.plan import Plan
from console.model.slices import Slice
from console.model.status import Status, fold


@dataclass(frozen=True, slots=True)
class Write:
    """One commit to the region's tables: a batch's slices, or a step (first and last 0)."""

    rollout: str
    step: str
    first: int = 0
    last: int = 0


class FakeDisk:
    """Releases, events and commits of one pipeline.

    writes   every commit, in order; together they must contain each slice exactly once
    stored   every stored event, in order
    cuts     step → its slices, in the fixed order
    fed      version path → the paths that feed it; shared versions follow the live release
    commits  Delta versions so far
    """

    def __init__(
        self,
        live: Live,
        releases: Sequence[ReleaseRow],
        clock: Callable[[], float],
        tell: Callable[[Recorded], None],
    ) -> None:
        self.pipeline = live.pipeline
        self.region = live.region
        self.releases = list(releases)
        self.manifests: dict[str, Release] = {live.release.id: live.release} if live.release else {}
        self.stats: dict[str, TableStats] = {stats.name: stats for stats in live.stats}
        self.writes: list[Write] = []
        self.stored: list[Recorded] = []
        self.status = Status()
        self.plan: Plan | None = None
        self.cuts: dict[str, tuple[Slice, ...]] = {}
        self.fed: dict[str, tuple[str, ...]] = _fed(live.release) if live.release else {}
        self.commits = 0
        self.on_hold: list[HeldRelease] = []
        self._clock = clock
        self._tell = tell

    @property
    def live(self) -> str:
        return self.in_state("live")

    def in_state(self, state: ReleaseState) -> str:
        """The id of the release in that state, or ""."""
        return next((row.id for row in self.releases if row.state == state), "")

    def row(self, release: str) -> ReleaseRow:
        return next(row for row in self.releases if row.id == release)

    def propose(self, plan: Plan, who: Who) -> None:
        """A preview beside the live release."""
        self.plan, self.cuts = plan, {}
        self.manifests[plan.release.id] = plan.release
        row = ReleaseRow(
            id=plan.release.id,
            state="preview",
            at=self._clock(),
            by=who.name,
            host=who.host,
            digest=plan.release.digest,
        )
        self.releases.append(row)

    def swap(self, live: str, to: str, who: Who) -> None:
        """One commit: `to` becomes live, and the live release becomes previous.

        raises  Conflict if another release than `live` is live
        """
        if self.live != live:
            raise Conflict(f"{self.region}: live is {self.live}, not {live}", region=self.region, hint="console status")
        self.commits += 1
        states: dict[str, ReleaseState] = {live: "previous", to: "live"}
        rows = [
            replace(row, state=states.get(row.id, "retired" if row.state == "previous" else row.state))
            for row in self.releases
        ]
        now = self._clock()
        self.releases = [replace(row, at=now, by=who.name, host=who.host) if row.id == to else row for row in rows]
        if to in self.manifests:
            self.fed |= _fed(self.manifests[to])

    def mark(self, release: str, state: ReleaseState) -> None:
        self.releases = [replace(row, state=state) if row.id == release else row for row in self.releases]

    def drop(self, gone: Sequence[str], *, dry_run: bool = False) -> tuple[str, ...]:
        """Forget releases; returns the version paths that no other release names."""
        kept = {state.version.path for row in self.releases if row.id not in gone for state in self._tables(row.id)}
        paths = sorted({state.version.path for id in gone for state in self._tables(id)} - kept)
        if not dry_run:
            self.releases = [row for row in self.releases if row.id not in gone]
            self.on_hold = [held for held in self.on_hold if held.release not in gone]
        return tuple(paths)

    def reached(self, step: str) -> int:
        """Index of the last slice in the step's commits."""
        return max((w.last for w in self.writes if (w.rollout, w.step) == (self.status.rollout, step)), default=0)

    def write(self, step: str, first: int = 0, last: int = 0) -> None:
        """Commit a batch, or an idempotent step."""
        self.commits += 1
        write = Write(self.status.rollout, step, first, last)
        if last or write not in self.writes:
            self.writes.append(write)

    def keep(self, event: Event, rollout: str = "") -> None:
        """Store an event, then publish it. `rollout` begins a new one."""
        seq = 1 if rollout else self.status.seq + 1
        recorded = Recorded(rollout or self.status.rollout, seq, self._clock(), event)
        self.stored.append(recorded)
        self.status = fold(self.status, recorded)
        self._tell(recorded)

    def say(self, event: Event) -> None:
        """Publish a fleeting event."""
        recorded = Recorded(self.status.rollout, 0, self._clock(), event)
        self.status = fold(self.status, recorded)
        self._tell(recorded)

    def _tables(self, release: str) -> tuple[TableState, ...]:
        return self.manifests[release].tables if release in self.manifests else ()


def _fed(release: Release) -> dict[str, tuple[str, ...]]:
    paths = {state.table.name: state.version.path for state in release.tables}
    sources = {name: [paths[f.source] for f in release.feeds_into(name) if f.source in paths] for name in paths}
    return {paths[name]: tuple(versions) for name, versions in sources.items() if versions}
