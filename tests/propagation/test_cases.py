"""Migrations of other projects are observed as labelled, except for the listed differences, each with its reason."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.propagation.migration_file import to_data
from console.propagation.observe.read import observe
from tests.propagation import pgroll

CASES = Path(__file__).parent / "cases"
SILENT = ("raw_sql",)  # its SQL is what is observed


def steps() -> Iterator[tuple[str, str, list[dict[str, Any]], list[tuple[str, str]]]]:
    """(step, SQL, labels, the files before it)"""
    for case in json.loads((CASES / "pgroll_examples.json").read_text())["cases"]:
        yield case["id"], pgroll.statements(case["migration"]["operations"]), case["labels"], []
    for case in json.loads((CASES / "eugene_bad_good.json").read_text())["cases"]:
        before: list[tuple[str, str]] = []
        for number, step in enumerate(case["steps"], 1):
            name = f"{case['id']}#{number}"
            yield name, step["sql"], step["labels"], list(before)
            before.append((name, step["sql"]))


def theirs(label: dict[str, Any]) -> dict[str, Any]:
    """A label as plain facts."""
    op = label["op"]
    results: dict[str, Any] = {"op": op, "scope": label["siphon_scope"], "phase": label["phase"]}
    if op == "add_column":
        results |= {"column": label["column"], "nullable": label["nullable"], "default": label["default"]}
    elif op == "rename_column":
        results |= {"columns": {label["old"]: label["new"]}}
    elif "column" in label:
        results |= {"column": label["column"]}
    return results


def ours(sql: str, before: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What was observed, in the same words, in the order of the statements."""
    observed = observe([("m.sql", sql)], before)
    messages = []
    for seen in observed.migrations:
        data = to_data(seen.migration)
        operation = data["operation"]
        fact: dict[str, Any] = {"op": operation["type"], "scope": "propagate", "phase": data["phase"]}
        if operation["type"] == "add_column":
            fact |= {"column": operation["name"], "nullable": operation["nullable"], "default": operation["default"]}
        elif operation["type"] == "swap_columns":
            fact |= {"columns": operation["columns"]}
        elif operation["type"] == "change_column":
            fact |= {"column": operation["name"], "classification": operation["classification"]}
        else:
            fact |= {"column": operation["name"]}
        messages.append((_line(seen.where), fact))
    messages += [(_line(left.where), {"op": left.kind, "scope": "ignore"}) for left in observed.ignored]
    return [fact for _, fact in sorted(messages, key=lambda entry: entry[0])]


def _line(where: str) -> int:
    return int(where.rpartition(":")[2])


def differences() -> list[dict[str, Any]]:
    """Every step whose facts are not those of its labels."""
    results = []
    for name, sql, labels, before in steps():
        wanted = [theirs(label) for label in labels if label["op"] not in SILENT]
        seen = ours(sql, before)
        if [label["op"] for label in labels] == ["raw_sql"]:
            wanted = seen  # judged by test_raw_sql_is_looked_into
        for entry in wanted:
            if entry["scope"] in ("out_of_scope", "ignore") and {"op": entry["op"], "scope": "ignore"} in seen:
                seen.remove({"op": entry["op"], "scope": "ignore"})
            elif entry in seen:
                seen.remove(entry)
            else:
                mine = next((fact for fact in seen if _about(fact) == _about(entry)), None)
                if mine is not None:
                    seen.remove(mine)
                results.append({"case": name, "theirs": entry, "ours": mine})
        results += [{"case": name, "theirs": None, "ours": fact} for fact in seen if wanted is not seen]
    return results


_SAME = {
    "rename_column": "swap_columns", "change_type": "change_column", "set_not_null": "change_column",
    "drop_not_null": "change_column", "set_default": "change_column", "drop_default": "change_column",
}  # fmt: skip


def _about(fact: dict[str, Any]) -> tuple[str, Any]:
    return _SAME.get(fact["op"], fact["op"]), fact.get("column") or sorted(fact.get("columns", {}))


@pytest.mark.slow
def test_every_case_is_observed_as_labelled_but_for_the_listed_differences() -> None:
    listed = json.loads((CASES / "differences.json").read_text())
    assert all(entry["why"] for entry in listed)
    assert differences() == [{key: entry[key] for key in ("case", "theirs", "ours")} for entry in listed]


def test_raw_sql_is_looked_into() -> None:
    seen = {name: ours(sql, before) for name, sql, labels, before in steps() if labels[0]["op"] == "raw_sql"}
    assert seen == {
        "pgroll/05_sql": [{"op": "create_table", "scope": "ignore"}],
        "pgroll/32_sql_on_complete": [
            {
                "op": "add_column",
                "scope": "propagate",
                "phase": "pre",
                "column": "birth_date",
                "nullable": True,
                "default": None,
            }
        ],
        "pgroll/40_create_enum_type": [{"op": "create_type", "scope": "ignore"}],
    }


def test_the_expand_and_swap_of_eugene_ends_in_a_column_that_takes_the_place_of_another() -> None:
    results = [(name, sql, before) for name, sql, _, before in steps() if name == "eugene/E5/good#4"]
    [(_, sql, before)] = results
    migrations = [to_data(seen.migration) for seen in observe([("m.sql", sql)], before).migrations]
    assert [(m["phase"], m["operation"]) for m in migrations] == [
        ("post", {"type": "replace_column", "name": "price", "from": "new_price"}),
    ]
