"""Witnesses: the smallest made-up rows on which an old and a new query differ, confirmed on Spark before they are shown."""

from console.witness.plans import (
    NO_ROW_CHANGES,
    QueryEdit,
    Witnesses,
    WitnessFinder,
    query_edits,
    witness_between,
    witnesses_of,
)
from console.witness.search import (
    NoWitness,
    Witness,
    WitnessQuery,
    WitnessResult,
    candidates,
    find_witness,
    witness_query,
)
from console.witness.worker import WitnessProgress, WitnessWorker

__all__ = [
    "NO_ROW_CHANGES",
    "NoWitness",
    "QueryEdit",
    "Witness",
    "WitnessFinder",
    "WitnessProgress",
    "WitnessQuery",
    "WitnessResult",
    "WitnessWorker",
    "Witnesses",
    "candidates",
    "find_witness",
    "query_edits",
    "witness_between",
    "witness_query",
    "witnesses_of",
]
