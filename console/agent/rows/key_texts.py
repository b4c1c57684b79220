"""Identification of rows for a person, by selected columns, never by the failing value."""

from collections.abc import Sequence
from typing import Any

from console.model.schema import quoted
from console.text import safe_text

EXAMPLES = 10
KEY_LENGTH = 200


def key_texts(rows: Any, columns: Sequence[str], most: int = EXAMPLES) -> tuple[str, ...]:
    """`id=e17, ts=2026-11-07 10:00:00` for each of the first rows. most: maximum number of rows"""
    # as text: Python cannot represent every time of Spark
    texts = [f"CAST({quoted(name)} AS STRING)" for name in columns] or ["'' AS nothing"]
    first = rows.selectExpr(*texts).limit(most).collect()
    return tuple(
        safe_text(", ".join(f"{name}={value}" for name, value in zip(columns, row, strict=False)))[:KEY_LENGTH]
        for row in first
    )
