"""Witnesses: the smallest made-up rows on which an old and a new query differ, seen on Spark before they are shown."""

from console.witness.search import Question, Sought, Witness, question, seek, suspects

__all__ = ["Question", "Sought", "Witness", "question", "seek", "suspects"]
