"""Results of fixture tests as text and as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from console.cli.format import count
from console.fixtures.compare import CellDifference, DifferingRow, RowComparison, ShownRow
from console.fixtures.run import ExpectationResult, FixtureResult, QueryFailed
from console.text import safe_text

Paint = Callable[[str, str], str]
_SHOWN = 10  # rows of one kind
_WIDTH = 200  # characters of one value
_LONG, _BEFORE = 60, 20  # characters shown of a text from its first difference on, and before it


def result_text(result: FixtureResult, paint: Paint) -> str:
    """One test: a line, and below it what differs."""
    word = paint("passed", "green") if result.passed else paint("FAILED", "red")
    name = result.fixture.name
    lines = [f"{word}  {safe_text(name)}  ({count(len(result.expectations), 'expectation')}, {result.seconds:.1f} s)"]
    for one in result.expectations:
        if not one.passed:
            lines += _expectation(one, paint)
    return "\n".join(lines)


def _expectation(one: ExpectationResult, paint: Paint) -> list[str]:
    lead = f"  {safe_text(one.wanted.where)}: {safe_text(one.wanted.label)}: "
    match one.outcome:
        case QueryFailed(error=error, table=table):
            what = f"{table} cannot be computed" if table else "the query failed"
            return [f"{lead}{safe_text(what)}: {safe_text(error)}"]
        case RowComparison() as comparison:
            return [f"{lead}{_summary(comparison)}", *_details(one, comparison, paint)]
    assert_never(one.outcome)


def _summary(comparison: RowComparison) -> str:
    text = f"expected {count(comparison.expected_rows, 'row')}, found {comparison.found_rows:,}"
    kinds = (("differing", comparison.differing), ("missing", comparison.missing), ("extra", comparison.extra))
    parts = [f"{len(rows):,} {word}" for word, rows in kinds if rows]
    return ": ".join(filter(None, (text, ", ".join(parts))))


def _details(one: ExpectationResult, comparison: RowComparison, paint: Paint) -> list[str]:
    lines = []
    if comparison.unknown:
        names, known = (", ".join(map(safe_text, names)) for names in (comparison.unknown, comparison.columns))
        lines.append(f"    no column {paint(names, 'red')}; there are: {known}")
    for row in comparison.differing[:_SHOWN]:
        lines.append(f"    {safe_text(row.row, _WIDTH)}  ({_line(row.where)})")
        lines += _cells(row, paint)
    lines += _more(comparison.differing)
    for word, colour, rows in (("missing", "green", comparison.missing), ("extra", "red", comparison.extra)):
        lines += [f"    {paint(word, colour)}  {_row(row)}" for row in rows[:_SHOWN]]
        lines += _more(rows)
    return lines


def _cells(row: DifferingRow, paint: Paint) -> list[str]:
    heads = [f"{safe_text(cell.column, 60)}  {safe_text(cell.kind, 60)}" for cell in row.cells]
    width = max(map(len, heads))
    lines = []
    for head, cell in zip(heads, row.cells, strict=True):
        misfit = f"  ({safe_text(cell.misfit)})" if cell.misfit else ""
        expected, result = _beside(cell.expected, cell.found)
        lines.append(f"      {head:<{width}}  expected  {paint(_value(expected), 'green')}{misfit}")
        lines.append(f"      {'':<{width}}  found     {paint(_value(result), 'red')}")
    return lines


def _beside(expected: Any, result: Any) -> tuple[Any, Any]:
    """Two long texts, from shortly before their first difference."""
    if not (isinstance(expected, str) and isinstance(result, str)) or max(len(expected), len(result)) <= _LONG:
        return expected, result
    same = next((at for at, pair in enumerate(zip(expected, result, strict=False)) if pair[0] != pair[1]), None)
    start = (min(len(expected), len(result)) if same is None else same) - _BEFORE
    return (f"…{expected[start:]}", f"…{result[start:]}") if start > 0 else (expected, result)


def _row(row: ShownRow) -> str:
    values = ", ".join(f"{safe_text(name, 60)}: {_value(value)}" for name, value in row.values.items())
    return f"{values}  ({_line(row.where)})" if row.where else values


def _line(where: str) -> str:
    """`line 14` of `plans/web/tests/a.yaml:14:7`: the file is printed above."""
    return f"line {where.rsplit(':', 2)[1]}" if where.count(":") >= 2 else safe_text(where)


def _more(rows: Sequence[Any]) -> list[str]:
    return [f"    … and {len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{safe_text(value, _WIDTH)}'"
    return safe_text(json.dumps(value, ensure_ascii=False), _WIDTH)


def summary_text(results: Sequence[FixtureResult], paint: Paint) -> str:
    failed = sum(not result.passed for result in results)
    shown = f"{failed} failed, " if failed else ""
    return paint(f"{count(len(results), 'test')}: {shown}{len(results) - failed} passed", "red" if failed else "green")


def results_data(pipeline: str, region: str, results: Sequence[FixtureResult]) -> dict[str, Any]:
    """For `--output json`."""
    failed = sum(not result.passed for result in results)
    tests = [_test_data(result) for result in results]
    summary = {"passed": len(results) - failed, "failed": failed}
    return {"pipeline": pipeline, "region": region, "tests": tests, "summary": summary}


def _test_data(result: FixtureResult) -> dict[str, Any]:
    return {
        "name": result.fixture.name,
        "file": result.fixture.file,
        "passed": result.passed,
        "seconds": round(result.seconds, 3),
        "expectations": [_expectation_data(one) for one in result.expectations],
    }


def _expectation_data(one: ExpectationResult) -> dict[str, Any]:
    head = {"node": one.wanted.node, "label": one.wanted.label, "where": one.wanted.where, "passed": one.passed}
    match one.outcome:
        case QueryFailed(error=error, table=table):
            return {**head, "error": error, "table": table}
        case RowComparison() as comparison:
            return {**head, **_comparison_data(comparison)}
    assert_never(one.outcome)


def _comparison_data(comparison: RowComparison) -> dict[str, Any]:
    return {
        "expected_rows": comparison.expected_rows,
        "found_rows": comparison.found_rows,
        "unknown_columns": comparison.unknown,
        "differing": [
            {"row": row.row, "where": row.where, "columns": [_cell_data(cell) for cell in row.cells]}
            for row in comparison.differing
        ],
        "missing": [_shown_data(row) for row in comparison.missing],
        "extra": [_shown_data(row) for row in comparison.extra],
    }


def _cell_data(cell: CellDifference) -> dict[str, Any]:
    return {"column": cell.column, "type": cell.kind, "expected": cell.expected, "found": cell.found}


def _shown_data(row: ShownRow) -> Mapping[str, Any]:
    return {"values": dict(row.values), **({"where": row.where} if row.where else {})}
