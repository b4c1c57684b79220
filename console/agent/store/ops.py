"""`_console/<pipeline>/ops`: decisions with their authors, and the receipts of every rollout. Append only, each row sealed.

A seal detects that a row was changed after it was written, by accident or by hand. Anyone with write access to the
table can compute a new seal, so it is not a signature: a receipt's content is verified against the data (`audit`).
"""

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table

from console import crash
from console.agent.store import commits
from console.agent.store.ledger import open_table, plain_id, select_rows
from console.model import codec
from console.model.event import Accepted, Ended, Promoted, Recorded, RolledBack
from console.model.identity import identity
from console.model.receipt import LEDGER, Measured, Receipt

_KINDS = {"string": DataType.utf8(), "bigint": DataType.int64(), "double": DataType.float64()}
_COLUMNS = {name: _KINDS[kind] for name, kind in LEDGER["ops"].items()}
Decision = Accepted | Promoted | RolledBack | Ended


class Ops:
    """One pipeline's table of decisions and receipts; written by the agent alone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ops"  # beside `releases` and `rollouts`

    def rows(self, rollout: str) -> list[dict[str, Any]]:
        """All rows of one rollout, as stored."""
        table = open_table(self.path)
        return [] if table is None else select_rows(table, f"SELECT * FROM t WHERE rollout = '{plain_id(rollout)}'")

    def has(self, rollout: str, step: str) -> bool:
        """Whether a step's receipts are stored."""
        return any(row["kind"] == "receipt" and row["step"] == step for row in self.rows(rollout))

    def store_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Store a step's receipts in one commit, unless they are stored already."""
        if self.has(receipts[0].rollout, receipts[0].step):
            return
        now = time.time()
        crash.point("before-receipts")
        self._append([_of_receipt(receipt, now) for receipt in receipts])
        crash.point("after-receipts")

    def store_decision(self, recorded: Recorded) -> None:
        """Store the decision of an already stored event; `mirror` catches up after a death between the two."""
        if isinstance(recorded.event, Decision):
            self._append([of_decision(recorded, recorded.event)])

    def mirror(self, rollout: str, events: Sequence[Recorded], *, owed: bool = False) -> None:
        """Store the decisions that are missing here because an agent died after storing their events.

        A rollout accepted by an earlier version gets none, or its receipts would count as lost.

        owed  these are events whose decisions this agent failed to store, whatever rows their rollout has
        """
        rows = self.rows(rollout) if rollout else []
        if not owed and len(events) != 1 and not any(row["kind"] in ("accepted", "receipt") for row in rows):
            return
        known = {row["seq"] for row in rows if row["kind"] != "receipt"}
        for recorded in events:
            if recorded.seq not in known:
                self.store_decision(recorded)

    def _append(self, rows: Iterable[dict[str, Any]]) -> None:
        sealed = [{**row, "seal": seal(row)} for row in rows]
        data = Table.from_pydict({name: Array([row[name] for row in sealed], kind) for name, kind in _COLUMNS.items()})
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        commits.append(str(self.path), data)


def seal(row: dict[str, Any]) -> str:
    """A digest over all columns of a row but the seal."""
    values = [row[name] for name in _COLUMNS if name != "seal"]
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).hexdigest()


def receipts_of(rows: Iterable[dict[str, Any]]) -> tuple[Receipt, ...]:
    """The receipts among a rollout's rows: by step, newest day first, the order of a backfill.

    raises  DataError if a row does not decode
    """
    names = [name for name in Receipt.__dataclass_fields__ if name != "how"]
    receipts = []
    for row in rows:
        if row["kind"] == "receipt":
            how = codec.decode(Measured, codec.loads(row["how"] or ""))
            receipts.append(codec.decode(Receipt, {**{name: row[name] for name in names}, "how": codec.encode(how)}))
    return tuple(sorted(sorted(receipts, key=lambda r: r.day, reverse=True), key=lambda r: (r.at, r.step)))


def of_decision(recorded: Recorded, event: Decision) -> dict[str, Any]:
    """A decision as a row, without its seal."""
    who = identity(event.by)
    row: dict[str, Any] = {"rollout": recorded.rollout, "seq": recorded.seq, "at": recorded.at}
    row |= {"who": who.name, "identity": who.source}
    match event:
        case Accepted():
            row |= {"kind": "accepted", "plan": event.plan}
        case Promoted():
            row |= {"kind": "promoted"}
        case RolledBack():
            row |= {"kind": "rolled-back"}
        case Ended():
            return _filled({**row, "kind": event.state})
    return _filled({**row, "host": event.host, "release": event.release, "was": event.was})


def _of_receipt(receipt: Receipt, at: float) -> dict[str, Any]:
    columns = {name: getattr(receipt, name) for name in Receipt.__dataclass_fields__ if name in _COLUMNS}
    return _filled({**columns, "kind": "receipt", "at": at, "how": codec.dumps(receipt.how)})


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    empty = {"string": "", "bigint": 0, "double": 0.0}
    return {name: row.get(name, empty[kind]) for name, kind in LEDGER["ops"].items() if name != "seal"}
