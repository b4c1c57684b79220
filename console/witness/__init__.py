"""Witnesses: the smallest made-up rows on which an old and a new query differ, seen on Spark before they are shown."""

from console.witness.plans import SAME, Edit, Seeker, Witnesses, between, edits, of_plans
from console.witness.prover import Prover, Witnessed
from console.witness.search import Question, Sought, Witness, question, seek, suspects

__all__ = [
    "SAME", "Edit", "Prover", "Question", "Seeker", "Sought", "Witness", "Witnessed", "Witnesses", "between", "edits",
    "of_plans", "question", "seek", "suspects",
]  # fmt: skip
