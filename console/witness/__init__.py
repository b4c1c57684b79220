"""Witnesses: the smallest made-up rows on which an old and a new query differ, seen on Spark before they are shown."""

from console.witness.plans import SAME, QueryEdit, Seeker, Witnesses, between, edits, of_plans
from console.witness.prover import Prover, Witnessed
from console.witness.search import Sought, Witness, WitnessQuery, question, seek, suspects

__all__ = [
    "SAME",
    "Prover",
    "QueryEdit",
    "Seeker",
    "Sought",
    "Witness",
    "WitnessQuery",
    "Witnessed",
    "Witnesses",
    "between",
    "edits",
    "of_plans",
    "question",
    "seek",
    "suspects",
]  # fmt: skip
