"""The forecast of a rollout, in a line and as JSON."""

from datetime import UTC, datetime
from typing import Any

from console.cli.format import count, size
from console.runner.outlook.between import Between
from console.runner.outlook.forecast import Forecast


def forecast_text(expected: Forecast, currency: str = "") -> str:
    """`at its gate between 2026-11-24 15:45Z and 16:25Z: 1.2–1.4 GiB written, 3.10–3.40 EUR, measured in 7 batches`

    currency  "" if the region's file has no prices: then no money is shown
    """
    first, last = (datetime.fromtimestamp(at, UTC) for at in (expected.gate.low, expected.gate.high))
    day = "" if first.date() == last.date() else f"{last:%Y-%m-%d} "
    written = _between(*(size(round(each)) for each in (expected.written.low, expected.written.high)))
    money = _between(f"{expected.money.low:.2f}", f"{expected.money.high:.2f}")
    parts = [f"{written} written", *([f"{money} {currency}"] if currency else [])]
    measured = f"measured in {count(expected.batches, 'batch', 'batches')}"
    return f"at its gate between {first:%Y-%m-%d %H:%M}Z and {day}{last:%H:%M}Z: {', '.join(parts)}, {measured}"


def forecast_data(expected: Forecast | None) -> dict[str, Any] | None:
    """Times in seconds since 1970, UTC; None if nothing can be foretold."""
    if expected is None:
        return None
    return {
        "at": expected.at,
        "copied": _data(expected.copied),
        "gate": _data(expected.gate),
        "rows": _data(expected.rows),
        "bytes_written": _data(expected.written),
        "money": _data(expected.money),
        "batches": expected.batches,
    }


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low}–{high}"


def _data(span: Between) -> dict[str, float]:
    return {"from": span.low, "until": span.high}
