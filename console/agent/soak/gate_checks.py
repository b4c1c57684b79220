"""One round of a rollout's checks at its gate, by the Delta logs alone: feeds, whose rows were added, rows per day."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from console.agent.compared.quarantined import affected_tables
from console.agent.execution.validation import rebuilt_feeds, side_of, version_path
from console.agent.failure import message
from console.agent.feeds.live_feed import LiveFeed, stalled_targets
from console.agent.recount import sample as samples
from console.agent.rollout.context import RolloutContext
from console.agent.soak import counted_days
from console.model.event import Checked
from console.model.step import Comparison, Validate
from console.text import redacted, safe_text


@dataclass(frozen=True, slots=True)
class RoundMemory:
    """What the next round of a rollout begins with.

    looked  path of a rebuilt table → its version as of the last round
    last    app id of a feed → its last live commit as of then
    """

    looked: dict[str, int] = field(default_factory=dict)
    last: dict[str, samples.LiveCommit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GateRound:
    """One round. pins: version path → Delta version, one landing position of all feeds"""

    context: RolloutContext
    pins: Mapping[str, int]
    memory: RoundMemory
    last: dict[str, samples.LiveCommit] = field(default_factory=dict)  # for the next round

    def results(self) -> Iterator[Checked]:
        """The results of all checks, whether or not they are news.

        raises  RolloutStopped
        """
        for feed in rebuilt_feeds(self.context):
            self.context.check_halt()
            yield goes_on(feed)
        yield from self.rows()
        yield from self.tables()

    def rows(self) -> Iterator[Checked]:
        """Whether all rows since the last round are those of a rebuilt table's own feeds."""
        for feed in rebuilt_feeds(self.context):
            self.context.check_halt()
            yield from self._of_feed(feed)

    def tables(self) -> Iterator[Checked]:
        """Rows per day of both versions of each rebuilt table."""
        stalled = stalled_targets(self.context.follower.feeds(self.context.plan.pipeline))
        for step in self.context.plan.steps:
            for comparison in step.comparisons if isinstance(step, Validate) else ():
                self.context.check_halt()
                yield from self._of_table(comparison, stalled)

    def next(self) -> RoundMemory:
        """The memory of the round after this one."""
        targets = {feed.target_path for feed in rebuilt_feeds(self.context)}
        looked = {path: version for path, version in self.pins.items() if path in targets}
        return RoundMemory(looked, {**self.memory.last, **self.last})

    def _of_feed(self, feed: LiveFeed) -> Iterator[Checked]:
        """Whether all rows since the last round are its own, each once. What was wrong then is not cleared by later commits
        that are right.
        """
        target, name = feed.spec.target, f"feed {feed.spec.materialization}"
        after = self.memory.looked.get(feed.target_path, -1)
        wrong = samples.unpositioned_rows(feed.target_path, after) or samples.rewritten_rows(feed.target_path, after)
        fresh = samples.live_commits(feed.target_path, feed.app_id, after)
        before = self.memory.last.get(feed.app_id)  # which the first new one may repeat
        if before is not None and before.version <= after:
            fresh = (before, *fresh)
        wrong = wrong or samples.overlap(fresh)
        looked = self.pins.get(feed.target_path, -1)
        if known := [commit for commit in fresh if commit.version <= looked]:
            self.last[feed.app_id] = known[-1]
        if wrong:
            yield Checked(table=target, check=name, ok=False, detail=wrong)

    def _of_table(self, comparison: Comparison, stalled: Mapping[str, Exception]) -> Iterator[Checked]:
        """Rows per day, unless a feed of either side has stopped; of a promoted landing table the old version follows."""
        context, table = self.context, comparison.table
        if context.before is not None and context.state(table).table.kind == "landing":
            return
        sides = context.live(), context.plan.release
        paths = [version_path(context, table, release) for release in sides]
        if reason := next((str(stalled[path]) for path in paths if path in stalled), ""):
            why = f"a feed has stopped: {safe_text(redacted(reason), 300)}"
            yield Checked(table=table, check="rows are counted", ok=None, detail=why)
            return
        yield Checked(table=table, check="rows are counted", ok=True, detail="each feed goes on")
        if table not in affected_tables(context) and all(path in self.pins for path in paths):
            old, new = (side_of(context, table, release, dict(self.pins)) for release in sides)
            known = (c for c in context.recorder.status.checks if (c.table, c.check) == (table, counted_days.CHECK))
            differed = [day.day for each in known for day in each.days if not day.equal]
            result = counted_days.check(comparison, old, new, time.time(), differed)
            yield from () if result is None else (result,)


def goes_on(feed: LiveFeed) -> Checked:
    """Whether a feed has not stopped."""
    standing = feed.health.standing
    why = f"it has stopped: {safe_text(redacted(message(standing)), 300)}" if standing else "it moves"
    name = f"feed {feed.spec.materialization} goes on"
    return Checked(table=feed.spec.target, check=name, ok=standing is None, detail=why)


def not_going_on(table: str, rounds: int, why: str) -> Checked:
    """Asks a person, since the checks do not go on."""
    detail = f"not one of the last {rounds} rounds could be completed: {safe_text(redacted(why), 300)}"
    return Checked(table=table, check="checks go on", ok=None, detail=detail)


def going_on(table: str) -> Checked:
    """Clears `not_going_on`."""
    return Checked(table=table, check="checks go on", ok=True, detail="a round was completed")
