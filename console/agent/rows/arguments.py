"""Values of parameters: texts as typed Python values, which Spark binds as literals."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from console.errors import DataError


def arguments(args: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Texts as typed Python values, which Spark binds as literals.

    raises  DataError naming the parameter whose text is not a value of its type
    """
    return {name: _typed(name, value, kind) for name, (value, kind) in args.items()}


def _typed(name: str, text: str, kind: str) -> Any:
    try:
        match kind.partition("(")[0]:
            case "tinyint" | "smallint" | "int" | "bigint":
                return int(text)
            case "float" | "double":
                return float(text)
            case "decimal":
                return Decimal(text)
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
            case "date":
                return date.fromisoformat(text)
            case "timestamp":
                at = datetime.fromisoformat(text)
                return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, KeyError, InvalidOperation):
        raise DataError(f"parameter {name}: {text!r:.60} is not of type {kind}") from None
    return text
