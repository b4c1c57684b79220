"""Runs the cases of public projects, and writes the scoreboard: `python -m tests.planning.cases.run` prints it,
`--write` puts it into docs/planner.md.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.planning.compare import QueryDifference, compare
from console.planning.lineage import lineage
from tests.planning.cases import edits

HERE = Path(__file__).parent
PAGE = HERE.parent.parent.parent / "docs" / "planner.md"
BEGIN, END = "<!-- scoreboard: written by python -m tests.planning.cases.run --write -->\n", "<!-- end -->\n"


@dataclass(frozen=True)
class Result:
    """One case: what the project expects, what we say, and whether that is the same."""

    set: str
    case: str
    agrees: bool
    theirs: str
    ours: str


def stored(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return data


def shown(result: QueryDifference) -> str:
    """A difference in one line, for the list of intended ones."""
    parts = [f"{result.rows} rows"]
    lists = (("same", result.same), ("changed", result.changed), ("added", result.added), ("removed", result.removed))
    parts += [f"{what}: {', '.join(names)}" for what, names in lists if names]
    return "; ".join(parts + [f"renamed: {old} to {new}" for old, new in result.renamed.items()])


def agrees(case: dict[str, Any], result: QueryDifference) -> bool:
    """breaking: the rows or every value; partial: exactly these columns; non_breaking: equal or columns more."""
    match case["class"]:
        case "breaking":
            return result.rows != "same" or not (result.same or result.renamed)
        case "partial":
            message = dict.fromkeys(result.changed, "modified") | dict.fromkeys(result.added, "added")
            message |= dict.fromkeys((*result.removed, *result.renamed), "removed")
            message |= dict.fromkeys(result.renamed.values(), "added")
            return result.rows == "same" and message == case["columns"]
        case "non_breaking":
            added = [name for name, how in (case["columns"] or {}).items() if how == "added"]
            return result.additive and (case["columns"] is None or sorted(result.added) == sorted(added))
    return result.rows == "unknown"


def change_classes() -> Iterator[Result]:
    for case in stored("change_classes")["cases"]:
        comparison = compare(case["old"], case["new"])
        yield Result("change_classes", case["name"], agrees(case, comparison), case["class"], shown(comparison))


def change_categories() -> Iterator[Result]:
    for case in stored("sqlmesh_change_categories")["cases"]:
        comparison = compare(case["old"], case["new"])
        expected = case["expected"]
        same = comparison.equal if str(expected).startswith("ERROR") else comparison.additive == (expected is not None)
        theirs = "not proven" if expected is None else str(expected)
        yield Result("sqlmesh_change_categories", case["name"], same, theirs, shown(comparison))


def column_lineage() -> Iterator[Result]:
    """Into the tables of the last statement: what theirs expects are the script's ends."""
    for case in stored("sqllineage_public")["column"]:
        want = {
            ((one["source"]["table"] or "", one["source"]["column"]), (one["target"]["table"], one["target"]["column"]))
            for one in case["expected"]
        }
        got = lineage(case["sql"], case["dialect"], case.get("schema"))
        ends = {table for _, (table, _) in want} or set(got.targets)
        results = {pair for pair in got.columns if pair[1][0] in ends}
        yield Result("column_lineage", case["id"], results == want, str(sorted(want)), str(sorted(results)))


def table_lineage() -> Iterator[Result]:
    for case in stored("sqllineage_public")["table"]:
        want = (_names(case["source_tables"]), _names(case["target_tables"]))
        got = lineage(case["sql"], case["dialect"])
        results = (sorted(got.sources), sorted(got.targets))
        yield Result("table_lineage", case["id"], results == want, str(want), str(results))


def _names(tables: list[Any] | None) -> list[str]:
    return sorted(table if isinstance(table, str) else table["path"] for table in tables or [])


def public() -> list[Result]:
    return [*change_classes(), *change_categories(), *column_lineage(), *table_lineage()]


def intended() -> list[dict[str, str]]:
    data: list[dict[str, str]] = json.loads((HERE / "differences.json").read_text())
    return data


SETS = {
    "change_classes": "edits of a query by what they change (recce, Apache-2.0)",
    "sqlmesh_change_categories": "edits that are additive or not (SQLMesh, Apache-2.0)",
    "column_lineage": "column lineage of statements (sqllineage, MIT)",
    "table_lineage": "table lineage of statements (sqllineage, MIT)",
}


def scoreboard() -> str:
    """The numbers as Markdown, every one counted here."""
    results = public()
    lines = ["| cases | of | as expected | otherwise, on purpose |", "| --- | --- | --- | --- |"]
    for name, title in SETS.items():
        of = [result for result in results if result.set == name]
        good = sum(result.agrees for result in of)
        lines.append(f"| {title} | {len(of)} | {good} | {len(of) - good} |")
    own = (
        ("edits that change rows, none called harmless", edits.HAZARDS, lambda message: message.rows != "same"),
        ("edits that change a value or rows, none called equal", edits.OTHERS, lambda message: not message.additive),
        ("pure rewrites, recognised", edits.REWRITES, lambda message: message.equal),
        ("columns added and nothing else, recognised", edits.ADDITIONS, lambda message: message.additive),
    )
    for title, of_kind, good_is in own:
        good = sum(good_is(edits.judged(edit)) for edit in of_kind)
        lines.append(f"| our own: {title} | {len(of_kind)} | {good} | {len(of_kind) - good} |")
    lines += ["", "| case | theirs | ours | why |", "| --- | --- | --- | --- |"]
    lines += [f"| `{one['case']}` | {one['theirs']} | {one['ours']} | {one['why']} |" for one in intended()]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The document with the scoreboard as it is now."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + scoreboard() + END + rest.partition(END)[2]


if __name__ == "__main__":
    print(scoreboard(), end="")
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text()))
