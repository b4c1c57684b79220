"""Losses of a rollback after the promotion.

The previous release is still fed through its own versions, so it stays complete, except for tables that both releases
share: landing tables, and tables that only change in the release.
"""

from collections.abc import Mapping
from typing import Protocol

from console.model.live import Live, TableState
from console.model.pipeline import Pipeline
from console.model.plan import Rollback
from console.model.schema import Table
from console.planning.diff import Diff
from console.planning.fingerprint import DesiredTable
from console.planning.landing.conversion import Conversion
from console.planning.landing.forward_query import continued
from console.planning.loss.protocol import raised


class Changed(Protocol):
    @property
    def wanted(self) -> DesiredTable | None: ...
    @property
    def live(self) -> TableState | None: ...
    @property
    def diff(self) -> Diff | None: ...
    @property
    def shows_older(self) -> bool: ...
    @property
    def conversion(self) -> Conversion | None: ...


def rollback(pipeline: Pipeline, verdicts: Mapping[str, Changed], live: Live) -> Rollback:
    """Whether the previous release would answer as if the new one had never been live."""
    if live.release is None:
        return Rollback(True, (), "this is the first release, and there is no previous one to return to")
    lost: list[str] = []
    reasons: list[str] = []
    permanent: list[str] = []
    for name, verdict in verdicts.items():
        if verdict.conversion is not None and verdict.conversion.lost:
            lost += [f"{name}.{column}" for column in verdict.conversion.lost]
            reasons.append(
                f"what {', '.join(verdict.conversion.lost)} of {name} cannot hold is NULL or the default there"
            )
        if verdict.wanted is None or verdict.live is None or not verdict.shows_older:
            continue
        now, was = verdict.wanted.table, verdict.live.table
        if features := raised(now, live.table(name))[1]:
            permanent.append(f"the Delta protocol of {name} stays raised ({', '.join(features)})")
        keep_days, kept_days = now.retention_days, was.retention_days
        if keep_days is not None and (kept_days is None or keep_days < kept_days):
            lost += [f"{name}.{column.name}" for column in was.columns]
            reasons.append(f"rows of {name} older than {keep_days} days may be gone")
        elif now.kind == "landing" and verdict.diff is not None:
            columns, why = _of_landing(now, verdict.live, verdict.diff)
            lost += columns
            reasons += why
    for copy in live.release.copies:
        if copy.mode == "append" and not any(c.name == copy.name and c.into == copy.into for c in pipeline.copies):
            lost.append(f"{copy.into}.*")
            reasons.append(f"{copy.into} gets no rows from {copy.name} meanwhile")
    if lost or permanent:
        return Rollback(False, tuple(lost), "; ".join([*reasons, *permanent]))
    return Rollback(True, (), "the previous release is still fed from its own versions until cleanup")


def _of_landing(now: Table, live: TableState, diff: Diff) -> tuple[list[str], list[str]]:
    """Columns of a shared landing table for which the previous release would lack values, and why."""
    was = live.table
    lost: list[str] = []
    reasons: list[str] = []
    if gone := diff.hidden:
        lost += [f"{now.name}.{column}" for column in gone]
        what = "its producers may no longer send" if not now.managed else "rows that arrive meanwhile may lack"
        reasons.append(f"{what} {', '.join(gone)} of {now.name}")
    for pick in diff.picks:
        if pick.type and (column := was.column(pick.of)) is not None:
            lost.append(f"{now.name}.{pick.of}")
            reasons.append(f"values of {now.name}.{pick.name} that are not of type {column.type} are NULL there")
    named = continued(now, live).distinguished
    for again in sorted(named & {column.name for column in was.columns}):
        lost.append(f"{now.name}.{again}")
        reasons.append(f"values of {now.name}.{again} in lines of the new shape are NULL there")
    for retyped, why in diff.computed.items():
        if retyped not in named and why.kind == "type" and (column := was.column(retyped)) is not None:
            lost.append(f"{now.name}.{retyped}")
            reasons.append(f"values of {now.name}.{retyped} that are not of type {column.type} are NULL there")
    return lost, reasons
