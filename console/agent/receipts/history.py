"""What a region remembers of its rollouts, from its own tables alone: no Spark, no lock."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from console.agent.receipts.ops import receipts_of
from console.agent.receipts.step_receipts import ops_of
from console.agent.store.ledger import Rollouts
from console.model.event import Recorded
from console.model.receipt import Past
from console.model.status import replay

EVERY = "*"


def past(warehouse: Path, pipeline: str, which: str) -> Past:
    """Every rollout's last status, oldest first; of the one that is named also its events and receipts."""
    found: defaultdict[str, list[Recorded]] = defaultdict(list)
    for recorded in Rollouts(warehouse, pipeline).all_events():
        found[recorded.rollout].append(recorded)
    names = sorted(found, key=lambda name: int(name.rpartition("-")[2]))
    statuses = tuple(replay(found[name]) for name in names)
    if which == EVERY or which not in found:
        return Past(statuses)
    receipts = receipts_of(ops_of(warehouse, pipeline).rows(which))
    return Past(statuses, tuple(found[which]), tuple(replace(receipt, how=None) for receipt in receipts))
