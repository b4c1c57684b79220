"""Comparing the results of two queries: rows as multisets, values normalised across engines."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from console.drivers.replay import Ran


def failures(old: Ran, new: Ran) -> tuple[bool, bool]:
    """Whether the old and the new query failed."""
    return bool(old.error), bool(new.error)


def differ(old: Ran, new: Ran, pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether two results differ as multisets over the paired columns, or only one of the queries failed."""
    if old.error or new.error:
        return bool(old.error) != bool(new.error)
    if not pairs:
        return len(old.rows) != len(new.rows)
    return _bag(old, [one for one, _ in pairs]) != _bag(new, [other for _, other in pairs])


def _bag(ran: Ran, names: Sequence[str]) -> Counter[tuple[str, ...]]:
    columns = [column.lower() for column in ran.columns]
    at = [columns.index(name.lower()) for name in names]
    return Counter(tuple(_form(row[i], ran.kinds[i]) for i in at) for row in ran.rows)


def _form(value: Any, kind: str) -> str:
    if isinstance(value, str) and kind.lower().startswith("decimal"):
        return f"{Decimal(value).normalize():f}"  # 1.0 is 1.00
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"  # -0.0 is 0
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:.9g}" if abs(value) < 1e9 else str(value)
    if isinstance(value, str) and len(value) >= 19 and value[4:5] == "-" and value[10:11] == "T":
        return value.removesuffix("+00:00")
    return repr(value)
