"""The receipts of one rollout, checked again: against the tables as of the recorded versions where these can still be
read, else against what stands there today where that is exact, else not at all, which is said."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.agent.feeds.live_feed import live_feeds_of
from console.agent.receipts.cross_check import ledgers
from console.agent.receipts.ops import receipts_of
from console.agent.receipts.readable import taken_out, unreadable
from console.agent.receipts.step_receipts import carries, ops_of, summed, within
from console.agent.recount.live import pinned_feed, recount
from console.agent.recount.sample import log_is_complete
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.agent.store.ledger import Rollouts
from console.agent.store.survey import resolve
from console.errors import DataError
from console.model.plan import Plan
from console.model.receipt import Finding, Measured, Place, Receipt
from console.model.step import CatchUp

Sums = Mapping[str, tuple[int, str]]  # day → rows and checksum
Head = tuple[str, str, str]  # table, step, and what is checked


def verify(warehouse: Path, pipeline: str, rollout: str, spark: SparkHandle) -> tuple[Finding, ...]:
    """Everything about a rollout that can be checked again.

    raises  DataError where no rollout is called so
    """
    rollouts = Rollouts(warehouse, pipeline)
    events, plan = rollouts.events(rollout), rollouts.plan(rollout)
    if plan is None:
        raise DataError(f"{pipeline}: no rollout {rollout!r:.60} here", hint="console history", code="E_NO_ROLLOUT")
    rows = ops_of(warehouse, pipeline).rows(rollout)
    found, whole = ledgers(events, plan, rows)
    session = spark.session(spark__sql__files__maxPartitionNum=str(max(1, spark.slots - 1)))
    audit = Audit(warehouse, plan, session)
    receipts = receipts_of(row for row in rows if row["step"] in whole)
    for step in plan.steps:
        if own := tuple(receipt for receipt in receipts if receipt.step == step.id):
            found += audit.step(own)
        if isinstance(step, CatchUp):
            found.append(audit.live(step, rollout))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Audit:
    """One rollout's tables, read again."""

    warehouse: Path
    plan: Plan
    session: Any

    def step(self, receipts: Sequence[Receipt]) -> list[Finding]:
        """Both sides as they were, and what became of the target since."""
        first = receipts[0]
        how, head = first.how, (first.target, first.step)
        assert how is not None
        came = {r.day: (r.rows_in, r.checksum_in) for r in receipts if r.rows_in}
        went = {r.day: (r.rows_out, r.checksum_out) for r in receipts if r.rows_out}
        sides = [
            ("source", how.source, came, self._merged(first.source)),
            ("target", how.target, went, self._shared(first)),
        ]
        found = [self._side((*head, what), place, said, vague, how) for what, place, said, vague in sides]
        if not unreadable(resolve(self.warehouse, how.target.path), how.target).table:
            found.append(self._since((*head, "since"), how.target, went, self._shared(first)))
        return found

    def live(self, step: CatchUp, rollout: str) -> Finding:
        """A sample of what the feed has moved since, computed again; another one whenever its table has grown."""
        head = (step.target, step.id, "live")
        paths = [resolve(self.warehouse, state.version.path) for state in self.plan.release.tables]
        if not all(log.exists(path) for path in paths):
            return Finding(*head, None, "a table of its release is gone")
        edges = live_feeds_of(self.plan.release, lambda path: resolve(self.warehouse, path))
        edge = next(e for e in edges if (e.spec.target, e.spec.materialization) == (step.target, step.materialization))
        again = recount(self.session, pinned_feed(edge, {}), f"{rollout}/{log.latest_version(edge.target_path)}")
        if again is None and not log_is_complete(edge.target_path):
            return Finding(*head, None, "no live row in the commits that its log still tells")
        if again is None:
            return Finding(*head, True, "no live row has come yet")
        return Finding(*head, again.ok, again.detail)

    def _side(self, head: Head, place: Place, said: Sums, vague: str, how: Measured) -> Finding:
        """One side as of its version, else as it stands today unless that is too vague."""
        path = resolve(self.warehouse, place.path)
        gone = unreadable(path, place)
        if gone.table or (gone.why and vague):
            return Finding(*head, None, f"{gone.why}; {vague}" if vague and not gone.table else gone.why)
        version = log.latest_version(path) if gone.why else place.version
        try:
            now = self._read(place, version, how if head[2] == "source" else None)
        except Exception as error:
            return Finding(*head, False, f"version {version} cannot be read: {_of_spark(error)}")
        if gone.why:
            return today(head, gone.why, said, now)
        off = tuple(day for day in sorted({*said, *now}, reverse=True) if said.get(day) != now.get(day))
        if off:
            return Finding(*head, False, f"differs as of version {version}: {_some(said, now, off)}", off)
        rows = sum(count for count, _ in said.values())
        return Finding(*head, True, f"{rows:,} rows in {len(said)} days are equal as of version {version}")

    def _read(self, place: Place, version: int, how: Measured | None) -> Sums:
        found = summed(self.session, self.warehouse, place, version)
        return {d: (s.rows, s.text) for d, s in found.items() if how is None or within(how, d)}

    def _merged(self, table: str) -> str:
        """Why an aggregate's rows of today are not those of then; "" for every other table."""
        state = self.plan.release.table(table)
        aggregate = state is not None and state.table.kind == "aggregate"
        return "its partial states may have been merged since" if aggregate else ""

    def _shared(self, receipt: Receipt) -> str:
        """Why the target's rows of today cannot be told to be this step's; "" where they can."""
        steps = [step for step in self.plan.steps if carries(step) and getattr(step, "target", "") == receipt.target]
        before = receipt.how.target.before if receipt.how else -1
        mixed = "today's rows do not tell which step wrote them" if before >= 0 or len(steps) > 1 else ""
        return self._merged(receipt.target) or mixed

    def _since(self, head: Head, place: Place, said: Sums, vague: str) -> Finding:
        """Whether rows were taken out of the target after the rollout wrote them."""
        path = resolve(self.warehouse, place.path)
        taken = taken_out(path, place.version)
        if taken.ours and not taken.others:
            return Finding(*head, None, taken.ours)
        if not taken.others:
            return Finding(*head, None if taken.vague else True, taken.vague or taken.quiet)
        try:
            now = {} if vague else self._read(place, log.latest_version(path), None)
        except Exception as error:
            return Finding(*head, False, f"{taken.others}; the rest cannot be read: {_of_spark(error)}")
        off = tuple(day for day in sorted(said, reverse=True) if now and now.get(day, (0, ""))[0] < said[day][0])
        where = f": {_some(said, now, off)}" if off else ""
        return Finding(*head, False, f"{taken.others}{where}", off)


def _of_spark(error: Exception) -> str:
    """What kept Spark from reading a file; every other error passes, a lost JVM's too: it says nothing of the table."""
    if not type(error).__module__.startswith("pyspark") and type(error).__name__ != "Py4JJavaError":
        raise error
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line for line in lines if "[" in line), lines[0]).lstrip(": ")[:300]


def today(head: Head, why: str, said: Sums, now: Sums) -> Finding:
    """Judge by today's rows. A day that has more of them than then tells nothing; one that has fewer lost some."""
    oldest = min((day for day in now if day), default="")
    equal, late, gone, off = [], [], [], []
    for day, (rows, checksum) in sorted(said.items(), reverse=True):
        found, sums = now.get(day, (0, ""))
        if (found, sums) == (rows, checksum):
            equal.append(day)
        elif found > rows:
            late.append(day)
        elif not found and day and (not oldest or day < oldest):
            gone.append(day)
        else:
            off.append(day)
    if off:
        return Finding(*head, False, f"{why}; today differs: {_some(said, now, off)}", tuple(off))
    if not late and not gone:
        return Finding(*head, True, f"{len(equal)} days are equal as they stand today ({why})")
    parts = [f"{why}; {len(equal)} of {len(said)} days are equal as they stand today"]
    parts += [f"{len(late)} have got more rows since"] if late else []
    parts += [f"{len(gone)} are older than anything that is left"] if gone else []
    return Finding(*head, None, ", ".join(parts), (*late, *gone))


def _some(said: Sums, now: Sums, days: Sequence[str]) -> str:
    return ", ".join(_differing(said, now, days))


def _differing(said: Sums, now: Sums, days: Sequence[str]) -> Iterator[str]:
    for day in days[:3]:
        was, found = said.get(day, (0, ""))[0], now.get(day, (0, ""))[0]
        figures = f"{was:,} rows, found {found:,}" if was != found else f"{was:,} rows, with other values"
        yield f"{day or 'no day'}: {figures}"
    if len(days) > 3:
        yield f"and {len(days) - 3} more"
