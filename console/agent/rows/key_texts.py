"""Rows named to a person: by columns that were chosen for it, never by the value that is in question."""

from collections.abc import Sequence
from typing import Any

from console.model.schema import quoted
from console.text import safe_text

EXAMPLES = 10
KEY_LENGTH = 200


def key_texts(rows: Any, columns: Sequence[str], most: int = EXAMPLES) -> tuple[str, ...]:
    """`id=e17, ts=2026-11-07 10:00:00` of each of the first rows. most: rows at most"""
    # as text: Python has no value for every time that Spark has
    texts = [f"CAST({quoted(name)} AS STRING)" for name in columns] or ["'' AS nothing"]
    first = rows.selectExpr(*texts).limit(most).collect()
    return tuple(
        safe_text(", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=False)))[:KEY_LENGTH]
        for row in first
    )
