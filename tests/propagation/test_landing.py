"""A landing table's file is edited according to the migration, and nothing else changes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import DataError
from console.project.yaml import parse
from console.propagation.landing import Declared, edited
from console.propagation.migration import AddColumn, ChangeColumn, DropColumn, Facets, Migration, Operation, swap
from console.propagation.types import parse as generic

FLOW = "kind: landing\ncolumns: {id: string, 'two words': {type: int, comment: 'a, }b'}, m: \"decimal(10,2)\"}  # all\ntime: ts\n"
BLOCK = """# the landing table
kind: landing
columns:
  id: {type: string, comment: "unique, given"}   # first
  'two words':
    type: int
    # about it
    nullable: false

  m: decimal(10,2)
  # the end of the columns
time: ts
"""
TEXTS = pytest.mark.parametrize("text", [FLOW, BLOCK, BLOCK.replace("\n# the end", "").rstrip("\n"), FLOW[:-10]])


def change(text: str, operation: Operation) -> str:
    document = parse(text, "t.yaml")
    declared = Declared(text, document.data, document.keys, document.values)
    return edited(declared, Migration("pre", "public", "t", operation))


def columns(text: str) -> dict[str, Any]:
    result: dict[str, Any] = parse(text, "t.yaml").data["columns"]
    return result


def rest(text: str) -> list[str]:
    """Comments and everything beside the columns."""
    data = {key: value for key, value in parse(text, "t.yaml").data.items() if key != "columns"}
    return [repr(data), *[part for part in ("# first", "# all", "# the end", "# the landing") if part in text]]


@TEXTS
@pytest.mark.parametrize(
    ("kind", "word"), [("int64", "bigint"), ("decimal(9,1)", "decimal(9,1)"), ("array<string>", "array<string>")]
)
def test_an_added_column_stands_behind_the_others_and_twice_is_once(text: str, kind: str, word: str) -> None:
    new = change(text, AddColumn("on", generic(kind)))
    assert columns(new) == {**columns(text), "on": word}
    assert rest(new) == rest(text)
    assert change(new, AddColumn("on", generic(kind))) == new


@TEXTS
@pytest.mark.parametrize("name", ["id", "two words", "m"])
def test_a_dropped_column_is_gone_and_twice_is_once(text: str, name: str) -> None:
    new = change(text, DropColumn(name))
    assert columns(new) == {key: value for key, value in columns(text).items() if key != name}
    assert rest(new)[0] == rest(text)[0]
    assert change(new, DropColumn(name)) == new


@TEXTS
@pytest.mark.parametrize("pairs", [{"id": "a b"}, {"id": "m", "m": "id"}, {"two words": "x", "id": "two words"}])
def test_names_change_hands_and_keep_what_they_declare(text: str, pairs: dict[str, str]) -> None:
    new = change(text, swap(pairs))
    assert columns(new) == {pairs.get(key, key): value for key, value in columns(text).items()}
    assert rest(new) == rest(text)


@TEXTS
def test_a_widened_type_is_written_over_the_old_one(text: str) -> None:
    new = change(text, ChangeColumn("two words", Facets(generic("int64"), nullable=True), Facets(), "widening"))
    assert columns(new)["two words"]["type"] == "bigint"
    assert columns(new)["two words"].get("nullable", True) is True
    new = change(new, ChangeColumn("m", Facets(generic("decimal(12,2)")), Facets(), "widening"))
    assert columns(new)["m"] == "decimal(12,2)"
    assert rest(new) == rest(text)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (AddColumn("two words", generic("string")), "declared as int"),
        (swap({"nobody": "x"}), "no column nobody"),
        (swap({"id": "m"}), "a column m already"),
        (ChangeColumn("nobody", Facets(nullable=True), Facets(), "widening"), "no column nobody"),
    ],
)
def test_a_file_that_contradicts_the_migration_is_refused(operation: Operation, why: str) -> None:
    for text in (FLOW, BLOCK):
        with pytest.raises(DataError, match=why):
            change(text, operation)


@pytest.mark.slow
@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Cn")), min_size=1, max_size=8).filter(
        lambda n: "\ufeff" not in n
    )
)
def test_any_name_is_written_so_that_it_is_read_back(name: str) -> None:
    for text in (FLOW, BLOCK):
        if name not in columns(text):
            assert columns(change(text, AddColumn(name, generic("date"))))[name] == "date"
            assert name in columns(change(text, swap({"id": name})))
