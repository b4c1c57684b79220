"""The history of a region's rollouts, read from its own tables: no Spark, no lock."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from console.agent.compared.records import records_of
from console.agent.receipts.step_receipts import ops_of
from console.agent.store.ledger import Rollouts
from console.agent.store.ops import receipts_of
from console.model.event import Recorded
from console.model.receipt import Past
from console.model.rollout_id import rollout_number
from console.model.status import replay

EVERY = "*"


def read_history(warehouse: Path, pipeline: str, which: str, after: int | None = None) -> Past:
    """Final status of every rollout, oldest first, with the events and receipts of the one requested by name.

    after  number of its comparison records already read; a page of these is then returned instead of events and receipts
    """
    if after is not None:
        return Past((), compared=records_of(warehouse, pipeline).page(which, after))
    events: defaultdict[str, list[Recorded]] = defaultdict(list)
    for recorded in Rollouts(warehouse, pipeline).all_events():
        events[recorded.rollout].append(recorded)
    names = sorted(events, key=rollout_number)
    statuses = tuple(replay(events[name]) for name in names)
    if which == EVERY or which not in events:
        return Past(statuses)
    receipts = receipts_of(ops_of(warehouse, pipeline).rows(which))
    listed = tuple(replace(receipt, how=None) for receipt in receipts)
    return Past(statuses, tuple(events[which]), listed)
