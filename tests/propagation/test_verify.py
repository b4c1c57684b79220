"""Verify finds every difference between a store and PostgreSQL, and offers the migration that fixes it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.errors import DataError
from console.propagation.check.compare import Report, TableCheck, Unreached, compare
from console.propagation.check.render import data, junit, text
from console.propagation.clickhouse.types import is_nullable
from console.propagation.dialects import DIALECTS
from console.propagation.migration import AddColumn, ChangeColumn, DropColumn
from console.propagation.migration_file import from_data
from console.propagation.observe.read import read_schema
from console.propagation.replication import Replication
from console.propagation.replication import from_data as replication
from console.propagation.tables import PgColumn, PgTable, StoreColumn, StoreTable
from console.propagation.types import parse

PAIRS = Path(__file__).parent / "cases" / "gitlab_pairs"
FACTS = json.loads((PAIRS / "pairs.json").read_text())["tables"]
OWN = ["_siphon_replicated_at", "_siphon_deleted"]


def declared(name: str) -> StoreTable:
    """A ClickHouse table from its DDL, as `system.columns` would describe it."""
    ddl = (PAIRS / f"{name}.clickhouse.sql").read_text()
    body, _, tail = ddl.partition(")\nENGINE")
    results = []
    for column, kind, default in re.findall(r"^ +`(\w+)` (.+?)(?: DEFAULT (.+?))?,?$", body, re.MULTILINE):
        results.append(
            StoreColumn(
                name=column, type=kind, nullable=is_nullable(kind), default=default, kind="DEFAULT" if default else ""
            )
        )
    key = re.search(r"ORDER BY \(?([\w, ]+)\)?", tail)
    assert results
    assert key is not None
    return StoreTable(name=f"default.siphon_{name}", columns=tuple(results), key=tuple(key[1].split(", ")))


def gitlab(*names: str) -> Replication:
    stores = {"clickhouse": {"kind": "clickhouse", "table": "siphon_{table}"}}
    return replication({"tables": {name: {"extra": OWN} for name in names}, "stores": stores})


@pytest.mark.parametrize("facts", [f for f in FACTS if f["table"] != "labels"], ids=lambda facts: facts["table"])
def test_gitlabs_pairs_differ_where_the_collector_saw_drift_and_nowhere_else(facts: dict[str, Any]) -> None:
    name = facts["table"]
    config = gitlab(name)
    tables = read_schema([(name, (PAIRS / facts["postgres"]).read_text())])
    [checked] = compare(tables, config, config.stores[0], {f"siphon_{name}": declared(name)})
    # GitLab lets a store forbid NULL, chosen by hand, and its check passes: ours names each, `loose` accepts it.
    # A wrapper (LowCardinality) and a type its generator has no rule for (bytea) are no differences.
    expected = {d["column"] for d in facts["drift"] if d["kind"] == "postgres_nullable_but_clickhouse_not"}
    assert {(d.kind, d.column) for d in checked.wrong} == {("nullability", column) for column in expected}
    entry = replace(config.tables[0], loose=frozenset(expected))
    accepted = replace(config, tables=(entry,))
    [checked] = compare(tables, accepted, config.stores[0], {f"siphon_{name}": declared(name)})
    assert checked.wrong == ()


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts["table"])
def test_what_gitlabs_generator_makes_fits_but_for_what_it_calls_a_trap(facts: dict[str, Any]) -> None:
    config = gitlab(facts["table"])
    [table] = read_schema([("p.sql", (PAIRS / facts["postgres"]).read_text())])
    made = tuple(
        StoreColumn(
            name=name, type="String" if "no rule" in rule["type"] else rule["type"], nullable=is_nullable(rule["type"])
        )
        for name, rule in facts["generated_by_rule"].items()
    )
    store = StoreTable(name=f"siphon_{table.name}", columns=made, key=("id",))
    [checked] = compare([table], config, config.stores[0], {store.name: store})
    no_rule = {name for name, rule in facts["generated_by_rule"].items() if "no rule" in rule["type"]}
    assert {d.column for d in checked.wrong} == no_rule


def test_a_smallint_does_not_fit_the_int8_of_gitlabs_map() -> None:
    table = PgTable("public", "t", (PgColumn(name="n", postgres="smallint", type=parse("int16"), nullable=False),))
    config = gitlab("t")
    store = StoreTable(name="siphon_t", columns=(StoreColumn(name="n", type="Int8", nullable=False),))
    [checked] = compare([table], config, config.stores[0], {"siphon_t": store})
    [wrong] = checked.wrong
    assert (wrong.kind, wrong.expected, wrong.actual) == ("wrong_type", "Int16", "Int8")


WORDS = ["boolean", "int16", "int32", "int64", "decimal(10,2)", "string", "bytes", "date", "timestamp_tz", "uuid", "json",
         "array<int32>", "enum<'a'>", "float64", "time", "text_of<inet>"]  # fmt: skip
columns = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(WORDS), st.booleans()),
    min_size=1,
    max_size=6,
    unique_by=lambda c: c[0],
)


def stored(table: PgTable, kind: str) -> StoreTable:
    """The table as a store has it that lacks nothing."""
    results = []
    for column in table.columns:
        types = DIALECTS[kind].types
        word = types.store_type(column.type).word
        if column.nullable:
            word = types.nullable(word)
        nullable = is_nullable(word) if kind == "clickhouse" else column.nullable
        results.append(StoreColumn(name=column.name, type=word, nullable=nullable))
    return StoreTable(name=table.name, columns=tuple(results), key=table.key)


@pytest.mark.slow
@given(columns, st.sampled_from(list(DIALECTS)), st.data())
def test_what_lacks_nothing_differs_in_nothing_and_one_planted_fault_is_found_with_its_remedy(
    made: list[tuple[str, str, bool]], kind: str, draw: st.DataObject
) -> None:
    table = PgTable(
        "public",
        "t",
        tuple(PgColumn(name=n, postgres=w, type=parse(w), nullable=null) for n, w, null in made),
        (made[0][0],),
    )
    config = replication({"tables": {"t": None}, "stores": {"s": {"kind": kind}}})

    def wrong(store: StoreTable) -> list[tuple[str, str]]:
        [checked] = compare([table], config, config.stores[0], {"t": store})
        for difference in checked.wrong:
            assert (
                difference.fix is None
                or from_data(
                    json.loads(json.dumps(data(Report((checked,)))))["tables"][0]["differences"][0]["migration"]
                )
                == checked.differences[0].fix
            )
        return [(d.kind, d.column) for d in checked.wrong]

    good = stored(table, kind)
    assert wrong(good) == []
    victim = draw.draw(st.sampled_from(range(len(made))))
    name, word, null = made[victim]
    before, after = good.columns[:victim], good.columns[victim + 1 :]
    key = [("key", name)] if kind == "clickhouse" and victim == 0 else []
    assert wrong(replace(good, columns=(*before, *after))) == [("missing", name)]
    assert wrong(replace(good, columns=(*good.columns, StoreColumn(name="z", type="long")))) == [("extra", "z")]
    other = replace(good.columns[victim], type="Map(String, String)", nullable=True)
    assert wrong(replace(good, columns=(*before, other, *after))) == [("wrong_type", name)]
    assert wrong(replace(good, key=())) == ([("key", made[0][0])] if kind == "clickhouse" else [])
    strict = replace(good.columns[victim], nullable=False)
    forbidden = null and not (kind == "clickhouse" and word.startswith("array"))
    assert wrong(replace(good, columns=(*before, strict, *after))) == ([("nullability", name)] if forbidden else [])
    assert key in ([], [("key", name)])


@pytest.mark.parametrize("kind", DIALECTS)
def test_a_column_that_waits_for_its_name_is_told_and_never_to_be_dropped(kind: str) -> None:
    """Between the application's own migration and `apply --phase post`: its rows are there alone."""
    table = PgTable(
        "public",
        "t",
        (
            PgColumn(name="id", postgres="bigint", type=parse("int64"), nullable=False),
            PgColumn(name="n", postgres="bigint", type=parse("int64")),
        ),
        ("id",),
    )
    config = replication({"tables": {"t": None}, "stores": {"s": {"kind": kind}}})
    there = stored(table, kind)
    former = replace(there.columns[1], type="Map(String, String)")
    columns = (there.columns[0], former, replace(there.columns[1], name="n__new"))
    [checked] = compare([table], config, config.stores[0], {"t": replace(there, columns=columns)})
    [waits] = checked.wrong
    assert (waits.kind, waits.column, waits.fix) == ("extra", "n__new", None)
    assert "console schema apply --phase post" in waits.message


def test_the_remedies_are_those_that_a_person_would_write() -> None:
    table = PgTable(
        "public",
        "t",
        (
            PgColumn(name="a", postgres="bigint", type=parse("int64"), nullable=False, default="0"),
            PgColumn(name="b", postgres="text", type=parse("string")),
        ),
    )
    config = replication({"tables": {"t": None}, "stores": {"s": {"kind": "clickhouse"}}})
    store = StoreTable(
        name="t",
        columns=(
            StoreColumn(name="a", type="Int32", nullable=False),
            StoreColumn(name="b", type="String", nullable=False),
            StoreColumn(name="c", type="Date32"),
        ),
    )
    [checked] = compare([table], config, config.stores[0], {"t": store})
    fixes = [difference.fix for difference in checked.wrong]
    assert [fix.operation for fix in fixes if fix] == [
        ChangeColumn(
            "a", replace(_facets(), data_type=parse("int64")), replace(_facets(), data_type=parse("int32")), "widening"
        ),
        ChangeColumn("b", replace(_facets(), nullable=True), replace(_facets(), nullable=False), "widening"),
        DropColumn("c"),
    ]
    assert [fix.phase for fix in fixes if fix] == ["pre", "pre", "post"]
    [checked] = compare([table], config, config.stores[0], {"t": StoreTable(name="t", columns=store.columns[1:])})
    [missing, *_] = [difference.fix for difference in checked.wrong if difference.kind == "missing"]
    assert missing is not None
    assert missing.operation == AddColumn("a", parse("int64"), False, "0")


def _facets() -> Any:
    from console.propagation.migration import Facets

    return Facets()


def test_tables_that_are_missing_on_either_side_are_told_and_ignored_columns_are_not() -> None:
    config = replication(
        {
            "tables": {"t": {"ignore": ["secret"], "name": "u"}, "gone": None, "late": None},
            "stores": {"s": {"kind": "delta", "table": "x_{table}"}},
        }
    )
    tables = [
        PgTable(
            "public",
            "t",
            (
                PgColumn(name="id", postgres="bigint", type=parse("int64")),
                PgColumn(name="secret", postgres="text", type=parse("string")),
            ),
        ),
        PgTable("public", "late", ()),
    ]
    results = {
        "x_u": StoreTable(name="x_u", columns=(StoreColumn(name="id", type="long"),)),
        "x_gone": StoreTable(name="x_gone", columns=()),
    }
    checked = compare(tables, config, config.stores[0], results, "eu/s")
    assert [(c.place, [d.message for d in c.wrong]) for c in checked] == [
        ("x_u", []),
        ("x_gone", ["PostgreSQL has no table public.gone"]),
        ("x_late", ["eu/s has no table x_late"]),
    ]


def report() -> Report:
    config = gitlab("t")
    table = PgTable(
        "public",
        "t",
        (
            PgColumn(name="a\x1b[2J", postgres="bigint", type=parse("int64"), nullable=False),
            PgColumn(name="b", postgres="text", type=parse("string"), nullable=False),
        ),
    )
    store = StoreTable(name="siphon_t", columns=(StoreColumn(name="b", type="Nullable(String)", nullable=True),))
    return Report(
        (*compare([table], config, config.stores[0], {"siphon_t": store}), TableCheck("lake", "public.u", "u")),
        (Unreached("far", "no route"),),
    )


def test_the_text_names_what_differs_and_counts_and_lets_nothing_steer_the_terminal() -> None:
    assert text(report(), notes=True).splitlines() == [
        "clickhouse  public.t → siphon_t",
        "  - missing: siphon_t has no column a\\x1b[2J: its values arrive and are not stored (expected Int64)",
        "  . looser: siphon_t.b also takes NULL, which PostgreSQL forbids (Nullable(String), expected String)",
        "far  no answer: no route",
        "2 tables in 3 stores, 1 of them without an answer: 1 difference",
    ]
    assert "looser" not in text(report())
    assert report().exit_code == 5
    assert replace(report(), unreached=()).exit_code == 1
    assert Report(()).exit_code == 0


def test_the_junit_file_is_xml_with_a_suite_a_store_and_a_case_a_table() -> None:
    root = ElementTree.fromstring(junit(report()))
    counts = [(suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in root]
    assert counts == [("clickhouse", "1", "1", "0"), ("lake", "1", "0", "0"), ("far", "1", "0", "1")]
    assert [case.get("name") for case in root.iter("testcase")] == [
        "public.t in siphon_t",
        "public.u in u",
        "reach the store",
    ]


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ({"tabels": {}}, "unknown key 'tabels'"),
        ({"tables": {"t": {"ignored": []}}}, "tables.t: unknown key"),
        ({"tables": {"t": {"ignore": "a"}}}, "tables.t.ignore: expected a list"),
        ({"tables": [], "stores": {}}, "tables: expected keys"),
        ({"stores": {"s": {"kind": "oracle"}}}, "stores.s.kind: expected clickhouse"),
    ],
)
def test_a_replication_that_says_what_nobody_knows_is_refused(file: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError, match=re.escape(why)):
        replication(file)
