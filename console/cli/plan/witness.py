"""Witnesses on request, as text and as JSON: the rows for which an edit of a query changes the result."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from console.cli.format import count, table
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.replay import Ran
    from console.witness import Witnesses, WitnessResult

_SHOWN = 12  # rows of one result


def witness_data(witness_result: "WitnessResult") -> dict[str, Any]:
    """For `--output json`: the tables' rows and the result of each query, or why there is none."""
    witness = witness_result.witness
    if witness is None:
        return {"found": False, "tried": witness_result.tried, "why": witness_result.reason}
    tables = {name: {"columns": dict(given.columns), "rows": given.rows} for name, given in witness.tables.items()}
    results = {"old": _ran_data(witness.old), "new": _ran_data(witness.new)}
    return {"found": True, "tried": witness_result.tried, "replayed_on": "spark", "tables": tables, **results}


def _ran_data(ran: "Ran") -> dict[str, Any]:
    return {"error": ran.error} if ran.error else {"columns": ran.columns, "rows": ran.rows}


def witness_text(witness_result: "WitnessResult", lead: str = "witness") -> str:
    """The rows, and below them the old and new results; or one line saying that there is none."""
    witness = witness_result.witness
    if witness is None:
        return safe_text(
            f"{lead}: {witness_result.reason}" if witness_result.unchanged else f"{lead}: none; {witness_result.reason}"
        )
    lines = [safe_text(f"{lead}, replayed on Spark:")]
    for name, given in witness.tables.items():
        lines += _rows(f"{name}, {count(len(given.rows), 'row')}", [column for column, _ in given.columns], given.rows)
    for word, ran in (("old", witness.old), ("new", witness.new)):
        if ran.error:
            lines.append(f"  {word} fails: {safe_text(ran.error)}")
        else:
            lines += _rows(f"{word} gives {count(len(ran.rows), 'row')}", ran.columns, ran.rows)
    return "\n".join(lines)


def _rows(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    if not rows:
        return [f"  {safe_text(title)}"]
    cells = [[_cell(value) for value in row] for row in rows[:_SHOWN]]
    more = [f"    … and {len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []
    return [f"  {safe_text(title)}", table([safe_text(head) for head in heads], cells, indent=4), *more]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{safe_text(value)}'" if isinstance(value, str) else safe_text(str(value))


def witnesses_text(answers: "Witnesses") -> str:
    """All witnesses of a fleet, grouped by equal ones."""
    together: dict[tuple[str, str, int], list[str]] = {}
    for (region, name, feed), witness_result in answers.items():
        together.setdefault((name, feed, id(witness_result)), []).append(region)
    by_id = {id(witness_result): witness_result for witness_result in answers.values()}
    blocks = [
        witness_text(by_id[which], f"{', '.join(regions)}: {name} by {feed}: witness")
        for (name, feed, which), regions in together.items()
    ]
    return "\n\n".join(blocks) or "no query of a table is edited: there is nothing to witness"


def witnesses_data(answers: "Witnesses") -> list[dict[str, Any]]:
    return [
        {"region": region, "table": name, "materialization": feed, **witness_data(witness_result)}
        for (region, name, feed), witness_result in answers.items()
    ]
