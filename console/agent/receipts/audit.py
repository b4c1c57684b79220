"""Verification of one rollout's receipts: against the tables as of the recorded versions while these can be read, else
against today's rows where that is conclusive, else not at all, which the finding states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from console import paths
from console.agent.failure import from_spark
from console.agent.feeds.live_feed import LiveFeed, followed_with
from console.agent.receipts.cross_check import cross_check
from console.agent.receipts.findings import Subject
from console.agent.receipts.linked import check_files, check_since
from console.agent.receipts.listener import AuditListener
from console.agent.receipts.merges import as_written, unmeasured
from console.agent.receipts.readable import readability, removals
from console.agent.receipts.step_receipts import has_receipts, in_half, ops_of, sums_by_day
from console.agent.recount.live import pinned_feed, recount
from console.agent.recount.sample import log_is_complete
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.agent.store.ledger import Releases, Rollouts
from console.agent.store.ops import receipts_of
from console.errors import DataError
from console.model.live import TableState
from console.model.plan import Plan
from console.model.receipt import AuditProgress, Finding, Measured, Place, Receipt
from console.model.step import Backfill, CatchUp, Step

Sums = Mapping[str, tuple[int, str]]  # day → rows and checksum


@dataclass(frozen=True, slots=True)
class PendingCheck:
    """A check that reads tables, and its subject."""

    subject: Subject
    run: Callable[[], Finding]


def verify(
    warehouse: Path, pipeline: str, rollout: str, spark: SparkHandle, listener: AuditListener
) -> tuple[Finding, ...]:
    """Run every check on a rollout that is still possible, one by one.

    raises  DataError if no rollout has this name; AuditStopped
    """
    rollouts = Rollouts(warehouse, pipeline)
    events, plan = rollouts.events(rollout), rollouts.plan(rollout)
    if plan is None:
        raise DataError(f"{pipeline}: no rollout {rollout!r:.60} here", hint="console history", code="E_NO_ROLLOUT")
    rows = ops_of(warehouse, pipeline).rows(rollout)
    findings, readable = cross_check(events, plan, rows)
    session = spark.build_session()
    audit = Audit(warehouse, plan, session)
    receipts = receipts_of(row for row in rows if row["step"] in readable)
    checks = [check for step in plan.steps for check in audit.checks(step, receipts, rollout)]
    reported = 0
    for number, check in enumerate(checks, 1):
        subject, new = check.subject, tuple(findings[reported:])
        reported = len(findings)
        progress = AuditProgress(
            number=number, of=len(checks), table=subject.table, step=subject.step, what=subject.what, found=new
        )
        with listener.watching(spark, session, progress):
            findings.append(check.run())
    return tuple(findings)


@dataclass(frozen=True, slots=True)
class Audit:
    """Checks of one rollout's tables, which read them again."""

    warehouse: Path
    plan: Plan
    session: Any

    def checks(self, step: Step, receipts: Sequence[Receipt], rollout: str) -> Iterator[PendingCheck]:
        """The possible checks of one step."""
        if own := [receipt for receipt in receipts if receipt.step == step.id]:
            yield from self._of_receipts(own)
        if isinstance(step, Backfill) and step.linked:
            yield from self._of_files(step)
        if isinstance(step, CatchUp):
            yield PendingCheck(Subject(step.target, step.id, "live"), partial(self._live, step, rollout))

    def _of_receipts(self, receipts: Sequence[Receipt]) -> Iterator[PendingCheck]:
        """Source and target as of their recorded versions, and rows removed from the target since."""
        first = receipts[0]
        how = first.how
        assert how is not None
        read = {r.day: (r.rows_in, r.checksum_in) for r in receipts if r.rows_in}
        written = {r.day: (r.rows_out, r.checksum_out) for r in receipts if r.rows_out}
        source, target, since = (Subject(first.target, first.step, what) for what in ("source", "target", "since"))
        merged, shared = self._merged(first.source, how.source), self._shared(first, how.target)
        yield PendingCheck(source, partial(self._side, source, how.source, read, merged, how))
        yield PendingCheck(target, partial(self._side, target, how.target, written, shared, how))
        if not readability(paths.version_path(self.warehouse, how.target.path), how.target).table_gone:
            yield PendingCheck(since, partial(self._since, since, how.target, written, shared))

    def _of_files(self, step: Backfill) -> Iterator[PendingCheck]:
        """Files linked from the older version, and rows removed since."""
        state = self.plan.release.table(step.target)
        assert state is not None
        path = paths.version_path(self.warehouse, state.version.path)
        source, since = (Subject(step.target, step.id, what) for what in ("source", "since"))
        yield PendingCheck(source, partial(check_files, self.warehouse, path, source))
        yield PendingCheck(since, partial(check_since, path, since))

    def _live(self, step: CatchUp, rollout: str) -> Finding:
        """A sample of the rows moved by the feed since, recomputed; a different one once its table has grown."""
        subject = Subject(step.target, step.id, "live")
        stored = [paths.version_path(self.warehouse, state.version.path) for state in self.plan.release.tables]
        if not all(log.exists(path) for path in stored):
            return subject.finding(None, "a table of its release is gone")
        feeds = self._live_feeds()
        feed = next(
            (f for f in feeds if (f.spec.target, f.spec.materialization) == (step.target, step.materialization)), None
        )
        if feed is None:
            return subject.finding(None, "the version from which its rows came is gone")
        seed = f"{rollout}/{log.latest_version(feed.target_path)}"
        result = recount(self.session, pinned_feed(feed, {}, self._all_tables()), seed)
        if result is None and not log_is_complete(feed.target_path):
            return subject.finding(None, "no live row in the commits that its log still has")
        if result is None:
            return subject.finding(True, "no live row has arrived yet")
        return subject.finding(result.ok, result.detail)

    def _live_feeds(self) -> tuple[LiveFeed, ...]:
        """The feeds of the rollout's release, and those that relayed rows from earlier landing versions."""

        def resolve(path: str) -> str:
            return paths.version_path(self.warehouse, path)

        release, stored = self.plan.release, Releases(self.warehouse, self.plan.pipeline).all()
        was = next((each.release for each in stored if each.row.id == self.plan.live), None)
        return followed_with(was, release, resolve)

    def _all_tables(self) -> Iterator[tuple[TableState, str]]:
        """The tables of all releases that were not dropped, oldest first, with their paths."""
        for stored in Releases(self.warehouse, self.plan.pipeline).all():
            for state in stored.release.tables:
                yield state, paths.version_path(self.warehouse, state.version.path)

    def _side(self, subject: Subject, place: Place, recorded: Sums, ambiguous: str, how: Measured) -> Finding:
        """One side as of its version, else its current rows unless these are ambiguous."""
        path = paths.version_path(self.warehouse, place.path)
        lost = readability(path, place)
        if lost.table_gone or (lost.reason and ambiguous):
            reason = f"{lost.reason}; {ambiguous}" if ambiguous and not lost.table_gone else lost.reason
            return subject.finding(None, reason)
        version = log.latest_version(path) if lost.reason else place.version
        try:
            now = self._read(place, version, how if subject.what == "source" else None)
        except Exception as error:
            return subject.finding(False, f"version {version} cannot be read: {_spark_message(error)}")
        if lost.reason:
            return compare_with_today(subject, lost.reason, recorded, now)
        differing = tuple(day for day in sorted({*recorded, *now}, reverse=True) if recorded.get(day) != now.get(day))
        if differing:
            return subject.finding(
                False, f"differs as of version {version}: {_some(recorded, now, differing)}", differing
            )
        rows = sum(count for count, _ in recorded.values())
        return subject.finding(True, f"{rows:,} rows in {len(recorded)} days are equal as of version {version}")

    def _read(self, place: Place, version: int, how: Measured | None) -> Sums:
        sums = sums_by_day(self.session, self.warehouse, place, version)
        if version > place.version:
            sums = as_written(paths.version_path(self.warehouse, place.path), place, version, sums)
        return {d: (s.rows, s.text) for d, s in sums.items() if how is None or in_half(how, d)}

    def _merged(self, table: str, place: Place) -> str:
        """Why rows that were merged since cannot be compared with the recorded ones today; "" if they can, or none were."""
        state = self.plan.release.table(table)
        if state is not None and state.newest is not None:
            return "rows that newer ones replace may have been merged since"
        aggregate = state is not None and state.table.kind == "aggregate"
        return unmeasured(paths.version_path(self.warehouse, place.path), place) if aggregate else ""

    def _shared(self, receipt: Receipt, place: Place) -> str:
        """Why the target's current rows cannot be attributed to this step; "" if they can."""
        steps = [
            step for step in self.plan.steps if has_receipts(step) and getattr(step, "target", "") == receipt.target
        ]
        shared = len(steps) > 1 or place.before >= 0 or bool(place.feed)
        mixed = "today's rows do not show which step wrote them" if shared else ""
        return self._merged(receipt.target, place) or mixed

    def _since(self, subject: Subject, place: Place, recorded: Sums, ambiguous: str) -> Finding:
        """Whether rows were removed from the target after the rollout wrote them."""
        path = paths.version_path(self.warehouse, place.path)
        removed = removals(path, place.version)
        if removed.by_retention and not removed.by_others:
            return subject.finding(None, removed.by_retention)
        if not removed.by_others:
            return subject.finding(None if removed.unknown else True, removed.unknown or removed.none)
        try:
            now = {} if ambiguous else self._read(place, log.latest_version(path), None)
        except Exception as error:
            return subject.finding(False, f"{removed.by_others}; the rest cannot be read: {_spark_message(error)}")
        fewer = tuple(
            day for day in sorted(recorded, reverse=True) if now and now.get(day, (0, ""))[0] < recorded[day][0]
        )
        where = f": {_some(recorded, now, fewer)}" if fewer else ""
        return subject.finding(False, f"{removed.by_others}{where}", fewer)


def _spark_message(error: Exception) -> str:
    """Spark's message about an unreadable file. Any other error, such as a lost JVM's, is raised: it is not about the table."""
    if not from_spark(error):
        raise error
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line for line in lines if "[" in line), lines[0]).lstrip(": ")[:300]


def compare_with_today(subject: Subject, why: str, recorded: Sums, now: Sums) -> Finding:
    """Compare with today's rows. A day that has gained rows is inconclusive; one that has fewer has lost some."""
    oldest = min((day for day in now if day), default="")
    equal, late, gone, differing = [], [], [], []
    for day, (rows, checksum) in sorted(recorded.items(), reverse=True):
        rows_now, checksum_now = now.get(day, (0, ""))
        if (rows_now, checksum_now) == (rows, checksum):
            equal.append(day)
        elif rows_now > rows:
            late.append(day)
        elif not rows_now and day and (not oldest or day < oldest):
            gone.append(day)
        else:
            differing.append(day)
    if differing:
        return subject.finding(False, f"{why}; today differs: {_some(recorded, now, differing)}", tuple(differing))
    if not late and not gone:
        return subject.finding(True, f"{len(equal)} days are equal as of today ({why})")
    parts = [f"{why}; {len(equal)} of {len(recorded)} days are equal as of today"]
    parts += [f"{len(late)} have got more rows since"] if late else []
    parts += [f"{len(gone)} are older than anything left"] if gone else []
    return subject.finding(None, ", ".join(parts), (*late, *gone))


def _some(recorded: Sums, now: Sums, days: Sequence[str]) -> str:
    return ", ".join(_day_details(recorded, now, days))


def _day_details(recorded: Sums, now: Sums, days: Sequence[str]) -> Iterator[str]:
    for day in days[:3]:
        before, after = recorded.get(day, (0, ""))[0], now.get(day, (0, ""))[0]
        figures = f"{before:,} rows, found {after:,}" if before != after else f"{before:,} rows, with other values"
        yield f"{day or 'no day'}: {figures}"
    if len(days) > 3:
        yield f"and {len(days) - 3} more"
