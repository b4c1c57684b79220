"""A report as text, as JSON and as JUnit's XML."""

from typing import Any
from xml.etree import ElementTree

from console.propagation.check.compare import Report, SchemaDifference, TableCheck
from console.propagation.migration_file import to_data
from console.text import safe_text

_SYMBOLS = {
    "missing_table": "-", "missing": "-", "extra": "+", "wrong_type": "~", "nullability": "~", "key": "~", "looser": ".",
}  # fmt: skip


def text(report: Report, *, notes: bool = False) -> str:
    """For people: only what differs, store by store; a last line with the counts.

    notes  also stores that are looser than PostgreSQL, which is not a failure
    """
    lines: list[str] = []
    for checked in report.checked:
        shown = checked.differences if notes else checked.wrong
        if shown:
            lines.append(safe_text(f"{checked.store}  {checked.table} → {checked.place}"))
            lines += [_line(difference) for difference in shown]
    lines += [safe_text(f"{store.store}  no answer: {store.message}") for store in report.unreached]
    stores = {checked.store for checked in report.checked} | {store.store for store in report.unreached}
    silent = f", {len(report.unreached)} of them without an answer" if report.unreached else ""
    counts = f"{_many(len(report.checked), 'table')} in {_many(len(stores), 'store')}{silent}"
    lines.append(f"{counts}: {_many(report.wrong, 'difference')}")
    return "\n".join(lines)


def _line(difference: SchemaDifference) -> str:
    types = ""
    if difference.expected and difference.actual:
        types = f" ({difference.actual}, expected {difference.expected})"
    elif difference.expected:
        types = f" (expected {difference.expected})"
    return safe_text(f"  {_SYMBOLS[difference.kind]} {difference.kind}: {difference.message}{types}")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def data(report: Report) -> dict[str, Any]:
    """For programs; each `migration` is ready to be committed."""
    return {
        "tables": [
            {
                "store": checked.store,
                "table": checked.table,
                "place": checked.place,
                "differences": [_difference(difference) for difference in checked.differences],
            }
            for checked in report.checked
        ],
        "unreachable": [{"store": s.store, "message": s.message, "hint": s.hint} for s in report.unreached],
        "differences": report.wrong,
    }


def _difference(difference: SchemaDifference) -> dict[str, Any]:
    return {
        "kind": difference.kind,
        "severity": "note" if difference.note else "difference",
        "column": difference.column,
        "expected": difference.expected,
        "actual": difference.actual,
        "message": difference.message,
        "migration": to_data(difference.fix) if difference.fix else None,
    }


def junit(report: Report) -> str:
    """For CI: a suite a store, a case a table."""
    root = ElementTree.Element("testsuites", name="console schema verify")
    suites: dict[str, list[TableCheck]] = {}
    for checked in report.checked:
        suites.setdefault(checked.store, []).append(checked)
    for store, entries in suites.items():
        failed = sum(bool(entry.wrong) for entry in entries)
        counts = {"tests": str(len(entries)), "failures": str(failed), "errors": "0"}
        suite = ElementTree.SubElement(root, "testsuite", {"name": safe_text(store), **counts})
        for entry in entries:
            case = ElementTree.SubElement(
                suite, "testcase", classname=safe_text(store), name=safe_text(f"{entry.table} in {entry.place}")
            )
            if entry.wrong:
                first = safe_text(entry.wrong[0].message)
                failure = ElementTree.SubElement(case, "failure", message=first, type=entry.wrong[0].kind)
                failure.text = "\n".join(_line(difference) for difference in entry.wrong)
    for silent in report.unreached:
        counts = {"tests": "1", "failures": "0", "errors": "1"}
        suite = ElementTree.SubElement(root, "testsuite", {"name": safe_text(silent.store), **counts})
        case = ElementTree.SubElement(suite, "testcase", classname=safe_text(silent.store), name="reach the store")
        ElementTree.SubElement(case, "error", message=safe_text(silent.message), type="Unreachable")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
