"""The receipts of one rollout, checked again: against the tables as of the recorded versions where these can still be
read, else against what stands there today where that is exact, else not at all, which is said."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.agent.receipts.ledgers import ledgers
from console.agent.receipts.ops import receipts_of
from console.agent.receipts.proof import carries, ops_of, summed, within
from console.agent.receipts.readable import Taken, taken_out, unreadable
from console.agent.session import Spark
from console.agent.store import log
from console.agent.store.ledger import Rollouts
from console.agent.store.survey import resolve
from console.errors import DataError
from console.model.plan import Plan
from console.model.receipt import Finding, Measured, Place, Receipt

Sums = Mapping[str, tuple[int, str]]  # day → rows and checksum


def verify(warehouse: Path, pipeline: str, rollout: str, spark: Spark) -> tuple[Finding, ...]:
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
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Audit:
    """One rollout's tables, read again."""

    warehouse: Path
    plan: Plan
    session: Any

    def step(self, receipts: Sequence[Receipt]) -> list[Finding]:
        """Both sides as they were, and what became of the target since."""
        how = receipts[0].how
        assert how is not None
        came = {r.day: (r.rows_in, r.checksum_in) for r in receipts if r.rows_in}
        went = {r.day: (r.rows_out, r.checksum_out) for r in receipts if r.rows_out}
        head = (receipts[0].target, receipts[0].step)
        found = [self._side(head, "source", how.source, came, how), self._side(head, "target", how.target, went)]
        if found[1].ok and (since := self._since(head, how.target, went)):
            found.append(since)
        return found

    def _side(self, head: tuple[str, str], what: str, place: Place, said: Sums, how: Measured | None = None) -> Finding:
        """One side as of its version, else as it stands today."""
        gone = unreadable(resolve(self.warehouse, place.path), place)
        if gone.table:
            return Finding(*head, what, None, gone.why)
        now = self._read(place, None if not gone.why else log.latest_version(resolve(self.warehouse, place.path)), how)
        if not gone.why:
            off = tuple(day for day in sorted({*said, *now}, reverse=True) if said.get(day) != now.get(day))
            rows = sum(count for count, _ in said.values())
            day_word = f"{rows:,} rows in {len(said)} days"
            return (
                Finding(*head, what, False, f"differs as of version {place.version}: {_some(said, now, off)}", off)
                if off
                else Finding(*head, what, True, f"{day_word} are equal as of version {place.version}")
            )
        if what == "target" and (vague := self._vague(head[0], place)):
            return Finding(*head, what, None, f"{gone.why}; {vague}")
        return today(head, what, gone.why, said, now)

    def _read(self, place: Place, version: int | None, how: Measured | None) -> Sums:
        found = summed(self.session, self.warehouse, place, version)
        return {d: (s.rows, s.text) for d, s in found.items() if how is None or within(how, d)}

    def _vague(self, table: str, place: Place) -> str:
        """Why today's rows cannot stand for those of then; "" where they can."""
        state = self.plan.release.table(table)
        if state is not None and state.table.kind == "aggregate":
            return "its partial states may have been merged since"
        if place.before >= 0 or sum(carries(s) and getattr(s, "target", "") == table for s in self.plan.steps) > 1:
            return "today's rows do not tell which step wrote them"
        return ""

    def _since(self, head: tuple[str, str], place: Place, said: Sums) -> Finding | None:
        """Whether rows were taken out of the target after the rollout wrote them."""
        path = resolve(self.warehouse, place.path)
        taken: Taken = taken_out(path, place.version)
        if taken.ours and not taken.others:
            return Finding(*head, "since", None, taken.ours)
        if not taken.others:
            return Finding(*head, "since", None if taken.vague else True, taken.vague or taken.quiet)
        now = {} if self._vague(head[0], place) else self._read(place, log.latest_version(path), None)
        off = tuple(day for day in sorted(said, reverse=True) if now and now.get(day, (0, ""))[0] < said[day][0])
        where = f": {_some(said, now, off)}" if off else ""
        return Finding(*head, "since", False, f"{taken.others}{where}", off)


def today(head: tuple[str, str], what: str, why: str, said: Sums, now: Sums) -> Finding:
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
        return Finding(*head, what, False, f"{why}; today differs: {_some(said, now, off)}", tuple(off))
    if not late and not gone:
        return Finding(*head, what, True, f"{len(equal)} days are equal as they stand today ({why})")
    parts = [f"{why}; {len(equal)} of {len(said)} days are equal as they stand today"]
    parts += [f"{len(late)} have got more rows since"] if late else []
    parts += [f"{len(gone)} are older than anything that is left"] if gone else []
    return Finding(*head, what, None, ", ".join(parts), (*late, *gone))


def _some(said: Sums, now: Sums, days: Sequence[str]) -> str:
    return ", ".join(_differing(said, now, days))


def _differing(said: Sums, now: Sums, days: Sequence[str]) -> Iterator[str]:
    for day in days[:3]:
        was, found = said.get(day, (0, ""))[0], now.get(day, (0, ""))[0]
        figures = f"{was:,} rows, found {found:,}" if was != found else f"{was:,} rows, with other values"
        yield f"{day or 'no day'}: {figures}"
    if len(days) > 3:
        yield f"and {len(days) - 3} more"
