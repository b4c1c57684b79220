"""Migrations as JSON, their published schema, and the net changes of a transaction."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from console.errors import DataError
from console.propagation.dialects import DIALECTS
from console.propagation.migration import (
    CLASSIFICATIONS,
    KEPT,
    PHASES,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    ReplaceColumn,
    SwapColumns,
    swap,
)
from console.propagation.migration_file import from_data, read, to_data
from console.propagation.observe.events import ObservedChange
from console.propagation.observe.fold import fold
from console.propagation.types import SIMPLE, TIMES, Type, array, decimal, parse, timed
from console.propagation.widening import holds

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
labels = st.lists(names, max_size=3, unique=True).map(tuple)
scalars = st.one_of(
    st.sampled_from([Type(name=name) for name in SIMPLE] + [Type(name="decimal")]),
    st.builds(timed, st.sampled_from(TIMES), st.integers(0, 6)),
    st.integers(1, 1000).flatmap(lambda digits: st.builds(decimal, st.just(digits), st.integers(0, digits))),
    st.builds(lambda drawn: Type(name="enum", labels=drawn), labels),
    st.builds(lambda drawn: Type(name="text_of", of=drawn), names),
)
types = st.recursive(scalars, lambda inner: inner.map(array), max_leaves=3)
defaults = st.one_of(st.none(), st.sampled_from(["1", "true", "'a''b'", "now()", "[]"]))
facets = st.builds(
    Facets,
    st.one_of(st.just(KEPT), types),
    st.one_of(st.just(KEPT), st.booleans()),
    st.one_of(st.just(KEPT), defaults),
)
swaps = st.dictionaries(names, names, min_size=1, max_size=4).filter(
    lambda drawn: len(set(drawn.values())) == len(drawn) and all(old != new for old, new in drawn.items())
)
operations = st.one_of(
    st.builds(AddColumn, names, types, st.booleans(), defaults),
    st.builds(DropColumn, names),
    swaps.map(swap),
    st.builds(ChangeColumn, names, facets.filter(lambda to: to != Facets()), facets, st.sampled_from(CLASSIFICATIONS)),
    st.builds(ReplaceColumn, names, names, facets).filter(lambda drawn: drawn.name != drawn.source),
    st.builds(ReplaceColumn, names, st.none(), st.builds(Facets, types, st.booleans(), defaults)),
)
migrations = st.builds(Migration, st.sampled_from(PHASES), names, names, operations)


@given(migrations)
def test_a_migration_survives_its_json_and_is_what_the_published_schema_allows(migration: Migration) -> None:
    data = json.loads(json.dumps(to_data(migration)))
    assert from_data(data) == migration
    assert allowed(json.loads((DOCS / "migration.schema.json").read_text()), data)


@given(migrations, st.data())
def test_what_lacks_a_key_or_has_a_strange_one_is_no_migration_for_the_reader_nor_for_the_schema(
    migration: Migration, data: st.DataObject
) -> None:
    wrong = to_data(migration)
    place = wrong if data.draw(st.booleans()) else wrong["operation"]
    if data.draw(st.booleans()):
        place["strange"] = 1
    else:
        key = data.draw(st.sampled_from(sorted(set(place) - {"data_type", "nullable", "default"})))
        del place[key]
    with pytest.raises(DataError):
        from_data(wrong)
    assert not allowed(json.loads((DOCS / "migration.schema.json").read_text()), wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2, "phase": "pre", "schema": "s", "table": "t", "operation": {"type": "drop_column", "name": "a"}}',
        '{"version": 1, "phase": "now", "schema": "s", "table": "t", "operation": {"type": "drop_column", "name": "a"}}',
        '{"version": 1, "phase": "pre", "schema": "s", "table": "t", "operation": {"type": "drop_table", "name": "a"}}',
        '{"version": 1, "phase": "pre", "schema": "s", "table": "t", "operation": {"type": "swap_columns", "columns": {"a": "a"}}}',
        '{"version": 1, "phase": "pre", "schema": "s", "table": "t", "operation": {"type": "swap_columns", "columns": {"a": "c", "b": "c"}}}',
        '{"version": 1, "phase": "post", "schema": "s", "table": "t", "operation": {"type": "replace_column", "name": "a", "from": "a"}}',
        '{"version": 1, "phase": "post", "schema": "s", "table": "t", "operation": {"type": "replace_column", "name": "a", "from": null}}',
        '{"version": 1, "phase": "post", "schema": "s", "table": "t", "operation": {"type": "replace_column", "name": "a", "from": ""}}',
        '{"version": 1, "phase": "pre", "schema": "s", "table": "t", "operation": {"type": "add_column", "name": "a",'
        ' "data_type": "varchar", "nullable": true, "default": null}}',
        '{"version": 1, "version": 1, "phase": "pre", "schema": "s", "table": "t", "operation": {"type": "drop_column", "name": "a"}}',
    ],
)
def test_what_is_no_migration_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        read(text)


@pytest.mark.parametrize(
    "default",
    [
        "0, DROP COLUMN id", "now(), DROP COLUMN id", "'a', DROP COLUMN id", "'a' || 'b'", "a", "'", "'a", "'a'b'", "", "1;", "NULL",
        "-- ", "1 /* */", "[1]", "now() + 1", "0x1F", "1e", ".", "'\x00'", 0, False, [],
    ],
)  # fmt: skip
@pytest.mark.parametrize("change", [False, True])
def test_a_default_that_is_no_literal_is_refused_by_the_reader_and_the_schema(default: Any, change: bool) -> None:
    add = to_data(Migration("pre", "s", "t", AddColumn("c", Type(name="int32"))))
    if change:
        add = to_data(Migration("pre", "s", "t", ChangeColumn("c", Facets(default="1"), Facets(), "safe")))
    add["operation"]["default"] = default
    with pytest.raises(DataError, match="default: expected"):
        from_data(add)
    assert not allowed(json.loads((DOCS / "migration.schema.json").read_text()), add)


@pytest.mark.parametrize(
    "default", ["-5", "+1.5e-3", ".5", "5.", "true", "false", "now()", "[]", "''", "'it''s; DROP \n \\'", None]
)
def test_every_literal_that_observing_writes_is_read(default: str | None) -> None:
    migration = Migration("pre", "s", "t", AddColumn("c", Type(name="int32"), default=default))
    assert read(json.dumps(to_data(migration))) == migration
    assert allowed(json.loads((DOCS / "migration.schema.json").read_text()), to_data(migration))


def test_what_docs_publish_is_current() -> None:
    made = runpy.run_path(str(DOCS.parent / "tools" / "published.py"))["pages"]()
    assert {name: (DOCS / name).read_text() for name in made} == made


@given(types)
def test_a_type_survives_its_text_and_fits_what_every_store_makes_of_it(kind: Type) -> None:
    assert parse(str(kind)) == kind
    for dialect in DIALECTS.values():
        word = dialect.types.store_type(kind).word
        assert dialect.types.generic_type(word) is not None
        assert dialect.types.fits(word, kind)


@pytest.mark.parametrize(
    ("word", "kind", "fit"),
    [
        ("Enum8('ok' = 1, 'ill' = 2)", "enum<'ok','ill'>", True), ("Enum8('ok' = 1,'ill' = 2)", "enum<'ill'>", True),
        ("Nullable(Enum16('ok' = 1))", "enum<'ok','ill'>", False), ("Enum8('it\\'s' = 1)", "enum<'it''s'>", True),
        ("Array(Enum8('ok' = 1))", "array<enum<'ok'>>", True), ("Array(Enum8('ok' = 1))", "array<enum<'ill'>>", False),
        ("Enum8('ok' = 1)", "string", False), ("LowCardinality(String)", "enum<'ok'>", True), ("Int64", "enum<'ok'>", False),
    ],
)  # fmt: skip
def test_an_enum_of_a_store_fits_where_it_has_every_value(word: str, kind: str, fit: bool) -> None:
    assert DIALECTS["clickhouse"].types.fits(word, parse(kind)) is fit


@given(types, types, types)
def test_holding_is_an_order(one: Type, two: Type, three: Type) -> None:
    assert holds(one, one)
    if holds(one, two) and holds(two, three):
        assert holds(one, three)


ORDER = st.sampled_from("abc")
STEPS = st.lists(st.tuples(st.sampled_from(["add", "drop", "rename", "change"]), ORDER, ORDER), min_size=2, max_size=6)


@example({"a", "b"}, [[("rename", "a", "c"), ("rename", "b", "a"), ("drop", "c", "a")]])
@settings(max_examples=600, deadline=None)
@given(st.sets(ORDER, min_size=1), st.lists(STEPS, min_size=1, max_size=2))
def test_folded_transactions_end_where_their_statements_do_also_with_all_of_pre_before_all_of_post(
    start: set[str], transactions: list[list[tuple[str, str, str]]]
) -> None:
    from console.propagation.observe.fold import settled

    table = {name: [name] for name in start}  # column → where its values come from, and what became of it
    results: list[Migration] = []
    observed = []
    for number, steps in enumerate(transactions):
        events = []
        for index, (verb, name, other) in enumerate(steps):
            mark = f"{number}.{index}"
            if verb == "add" and name not in table:
                table[name] = [f"new {mark}"]
                events.append(
                    ObservedChange("s", "t", AddColumn(name, Type(name="enum", labels=(f"new {mark}",))), mark)
                )
            elif verb == "drop" and name in table:
                del table[name]
                events.append(ObservedChange("s", "t", DropColumn(name), mark))
            elif verb == "rename" and name in table and other not in table:
                table[other] = table.pop(name)
                events.append(ObservedChange("s", "t", SwapColumns(((name, other),)), mark))
            elif verb == "change" and name in table:
                to = Type(name="enum", labels=(mark,))
                table[name] = (
                    [table[name][0], mark] if not table[name][0].startswith("new") else [*table[name][:1], mark]
                )
                events.append(ObservedChange("s", "t", ChangeColumn(name, Facets(to), Facets(), "widening"), mark))
        observed += fold(events)
    results = [one.migration for one in settled(observed)]
    expected = {name: history[-1] for name, history in table.items()}
    assert played(start, results) == expected
    assert played(start, sorted(results, key=lambda m: PHASES.index(m.phase))) == expected


def played(start: set[str], result: list[Migration]) -> dict[str, str]:
    """A table after migrations: column → its last type's label, or the name it was born with."""
    table = {name: name for name in start}
    for migration in result:
        match migration.operation:
            case AddColumn(name=name, data_type=kind):
                assert name not in table
                table[name] = kind.labels[0]
            case DropColumn(name=name):
                del table[name]
            case SwapColumns(columns=pairs):
                moved = {new: table.pop(old) for old, new in pairs}
                assert not set(moved) & set(table)
                table |= moved
            case ReplaceColumn(name=name, source=None, to=to):
                assert name in table
                assert isinstance(to.data_type, Type)
                table[name] = to.data_type.labels[0]
            case ReplaceColumn(name=name, source=str(source)):
                assert name in table
                table[name] = table.pop(source)
            case ChangeColumn(name=name, to=to):
                assert name in table
                assert isinstance(to.data_type, Type)
                table[name] = to.data_type.labels[0]
    return table


_JSON: dict[str, type | tuple[type, ...]] = {"object": dict, "string": str, "boolean": bool, "null": type(None)}


def allowed(schema: dict[str, Any], data: Any) -> bool:
    """JSON Schema, as far as the published one uses it; a keyword that is not known here fails."""
    known = {
        "$schema", "title", "description", "type", "properties", "required", "additionalProperties", "const", "enum",
        "oneOf", "anyOf", "minLength", "minProperties", "pattern",
    }  # fmt: skip
    assert set(schema) <= known
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(isinstance(data, _JSON[kind]) for kind in kinds):
            return False
    if ("const" in schema and data != schema["const"]) or ("enum" in schema and data not in schema["enum"]):
        return False
    if len(data if isinstance(data, str | dict) else "") < max(
        schema.get("minLength", 0), schema.get("minProperties", 0)
    ):
        return False
    if isinstance(data, str) and "pattern" in schema and re.search(schema["pattern"], data) is None:
        return False
    if isinstance(data, dict) and not _object(schema, data):
        return False
    if "oneOf" in schema and sum(allowed(one, data) for one in schema["oneOf"]) != 1:
        return False
    return "anyOf" not in schema or any(allowed(one, data) for one in schema["anyOf"])


def _object(schema: dict[str, Any], data: dict[str, Any]) -> bool:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key, value in data.items():
        if key in properties:
            if not allowed(properties[key], value):
                return False
        elif more is False or (isinstance(more, dict) and not allowed(more, value)):
            return False
    return set(schema.get("required", ())) <= set(data)
