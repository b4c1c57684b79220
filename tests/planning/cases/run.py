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


def held(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return found


def shown(found: QueryDifference) -> str:
    """A difference in one line, for the list of intended ones."""
    parts = [f"{found.rows} rows"]
    lists = (("same", found.same), ("changed", found.changed), ("added", found.added), ("removed", found.removed))
    parts += [f"{what}: {', '.join(names)}" for what, names in lists if names]
    return "; ".join(parts + [f"renamed: {old} to {new}" for old, new in found.renamed.items()])


def agrees(case: dict[str, Any], found: QueryDifference) -> bool:
    """breaking: the rows or every value; partial: exactly these columns; non_breaking: equal or columns more."""
    match case["class"]:
        case "breaking":
            return found.rows != "same" or not (found.same or found.renamed)
        case "partial":
            said = dict.fromkeys(found.changed, "modified") | dict.fromkeys(found.added, "added")
            said |= dict.fromkeys((*found.removed, *found.renamed), "removed")
            said |= dict.fromkeys(found.renamed.values(), "added")
            return found.rows == "same" and said == case["columns"]
        case "non_breaking":
            added = [name for name, how in (case["columns"] or {}).items() if how == "added"]
            return found.additive and (case["columns"] is None or sorted(found.added) == sorted(added))
    return found.rows == "unknown"


def change_classes() -> Iterator[Result]:
    for case in held("change_classes")["cases"]:
        found = compare(case["old"], case["new"])
        yield Result("change_classes", case["name"], agrees(case, found), case["class"], shown(found))


def change_categories() -> Iterator[Result]:
    for case in held("sqlmesh_change_categories")["cases"]:
        found = compare(case["old"], case["new"])
        expected = case["expected"]
        same = found.equal if str(expected).startswith("ERROR") else found.additive == (expected is not None)
        theirs = "not proven" if expected is None else str(expected)
        yield Result("sqlmesh_change_categories", case["name"], same, theirs, shown(found))


def column_lineage() -> Iterator[Result]:
    """Into the tables of the last statement: what theirs expects are the script's ends."""
    for case in held("sqllineage_public")["column"]:
        want = {
            ((one["source"]["table"] or "", one["source"]["column"]), (one["target"]["table"], one["target"]["column"]))
            for one in case["expected"]
        }
        got = lineage(case["sql"], case["dialect"], case.get("schema"))
        ends = {table for _, (table, _) in want} or set(got.targets)
        found = {pair for pair in got.columns if pair[1][0] in ends}
        yield Result("column_lineage", case["id"], found == want, str(sorted(want)), str(sorted(found)))


def table_lineage() -> Iterator[Result]:
    for case in held("sqllineage_public")["table"]:
        want = (_names(case["source_tables"]), _names(case["target_tables"]))
        got = lineage(case["sql"], case["dialect"])
        found = (sorted(got.sources), sorted(got.targets))
        yield Result("table_lineage", case["id"], found == want, str(want), str(found))


def _names(tables: list[Any] | None) -> list[str]:
    return sorted(table if isinstance(table, str) else table["path"] for table in tables or [])


def public() -> list[Result]:
    return [*change_classes(), *change_categories(), *column_lineage(), *table_lineage()]


def intended() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((HERE / "differences.json").read_text())
    return found


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
        ("edits that change rows, none called harmless", edits.HAZARDS, lambda said: said.rows != "same"),
        ("edits that change a value or rows, none called equal", edits.OTHERS, lambda said: not said.additive),
        ("pure rewrites, recognised", edits.REWRITES, lambda said: said.equal),
        ("columns added and nothing else, recognised", edits.ADDITIONS, lambda said: said.additive),
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
