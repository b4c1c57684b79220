"""What a rollback after the promotion would lose.

The previous release goes on being fed from its own versions, so it stays whole, but for what both releases share:
landing tables, and tables that only change in the release.
"""

from collections.abc import Mapping
from typing import Protocol

from console.model.live import Live, TableState
from console.model.pipeline import Pipeline
from console.model.plan import Rollback
from console.planning.diff import Diff
from console.planning.fingerprint import DesiredTable
from console.planning.loss.protocol import raised


class Changed(Protocol):
    @property
    def wanted(self) -> DesiredTable | None: ...
    @property
    def live(self) -> TableState | None: ...
    @property
    def diff(self) -> Diff | None: ...
    @property
    def rebuilt(self) -> bool: ...


def rollback(pipeline: Pipeline, verdicts: Mapping[str, Changed], live: Live) -> Rollback:
    """Whether the previous release will answer as if the new one had never been live."""
    if live.release is None:
        return Rollback(True, (), "this is the first release, and there is no previous one to return to")
    lost: list[str] = []
    reasons: list[str] = []
    permanent: list[str] = []
    for name, verdict in verdicts.items():
        if verdict.wanted is None or verdict.live is None or verdict.rebuilt:
            continue
        now, was = verdict.wanted.table, verdict.live.table
        if features := raised(now, live.table(name))[1]:
            permanent.append(f"the Delta protocol of {name} stays raised ({', '.join(features)})")
        keep_days, kept_days = now.retention_days, was.retention_days
        if keep_days is not None and (kept_days is None or keep_days < kept_days):
            lost += [f"{name}.{column.name}" for column in was.columns]
            reasons.append(f"rows of {name} older than {keep_days} days may be gone")
        elif now.kind == "landing" and verdict.diff is not None:
            if gone := verdict.diff.hidden:
                lost += [f"{name}.{column}" for column in gone]
                what = "its producers may no longer send" if not now.managed else "rows that arrive meanwhile may lack"
                reasons.append(f"{what} {', '.join(gone)} of {name}")
            for pick in verdict.diff.picks:
                if pick.type and (column := was.column(pick.of)) is not None:
                    lost.append(f"{name}.{pick.of}")
                    reasons.append(f"values of {name}.{pick.name} that are no {column.type} are NULL there")
            for retyped, why in verdict.diff.computed.items():
                if why.kind == "type" and (column := was.column(retyped)) is not None:
                    lost.append(f"{name}.{retyped}")
                    reasons.append(f"values of {name}.{retyped} that are no {column.type} are NULL there")
    for copy in live.release.copies:
        if copy.mode == "append" and not any(c.name == copy.name and c.into == copy.into for c in pipeline.copies):
            lost.append(f"{copy.into}.*")
            reasons.append(f"{copy.into} gets no rows from {copy.name} meanwhile")
    if lost or permanent:
        return Rollback(False, tuple(lost), "; ".join([*reasons, *permanent]))
    return Rollback(True, (), "the previous release is still fed from its own versions until cleanup")
