"""Types that change: the effect on the values, for every pair of types; and the columns exempted by a try_cast."""

from dataclasses import replace

import pytest

from console.planning.loss.values import tries
from console.planning.sql.convert import kept
from tests.planning.world import PARSE, REQUESTS, live, pipeline, planned, with_column, with_sql, with_table

pytestmark = pytest.mark.slow

TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,0)", "decimal(10,2)", "decimal(18,0)",
    "date", "timestamp", "timestamp_ntz", "string", "binary",
)  # fmt: skip
# one letter a pair, in the order above: = same, w wider, o whole (each converts, none loses), f may fail, c cut
TABLE = {
    #                b t s i l f d 5 2 8 D T N s b
    "boolean":       "= f f f f f f f f f f f f o f",
    "tinyint":       "c = w w w w w w w w f f f o f",
    "smallint":      "c f = w w w w w w w f f f o f",
    "int":           "c f f = w c w f f w f f f o f",
    "bigint":        "c f f f = c c f f f f f f o f",
    "float":         "c c c c c = w c c c f f f o f",
    "double":        "c c c c c c = c c c f f f o f",
    "decimal(5,0)":  "c f f w w w w = w w f f f o f",
    "decimal(10,2)": "c c c c c c c c = c f f f o f",
    "decimal(18,0)": "c f f f w c c f f = f f f o f",
    "date":          "f f f f f f f f f f = o o o f",
    "timestamp":     "f c c c c c c c c c c = f o f",
    "timestamp_ntz": "f f f f f f f f f f c f = o f",
    "string":        "f f f f f f f f f f f f f = o",
    "binary":        "f f f f f f f f f f f f f o =",
}  # fmt: skip
WORDS = {"=": "same", "w": "wider", "o": "whole", "f": "may fail", "c": "cut"}


@pytest.mark.parametrize("old", TYPES)
def test_every_pair_of_types_is_known(old: str) -> None:
    assert set(TABLE) == set(TYPES)
    narrowings = dict(zip(TYPES, TABLE[old].split(), strict=True))
    assert {new: kept(old, new) for new in TYPES} == {new: WORDS[letter] for new, letter in narrowings.items()}


@pytest.mark.parametrize(
    ("old", "new", "fate"),
    [
        ("array<double>", "array<int>", "cut"),
        ("array<int>", "array<bigint>", "whole"),
        ("array<string>", "array<int>", "may fail"),
        ("map<string,double>", "map<string,float>", "cut"),
        ("map<int,string>", "map<boolean,string>", "cut"),
        ("struct<a:int,b:double>", "struct<a:int,b:int>", "cut"),
        ("struct<a:int,b:double>", "struct<a:int>", "cut"),
        ("struct<a:int>", "struct<a:bigint,b:int>", "whole"),
        ("array<struct<a:decimal(9,3)>>", "array<struct<a:decimal(9,2)>>", "cut"),
        ("array<int>", "map<int,int>", "may fail"),
        ("array<int>", "string", "whole"),
        ("timestamp", "decimal(20,6)", "may fail"),
        ("decimal(9,2)", "decimal(9,3)", "may fail"),
        ("string", "varchar(5)", "may fail"),
        ("int", "variant", "may fail"),
        ("interval day to second", "int", "may fail"),
    ],
)
def test_what_holds_values_is_as_good_as_the_worst_of_them(old: str, new: str, fate: str) -> None:
    assert kept(old, new) == fate


def narrowings(column: str, old: str, new: str, expression: str, forward: str = "") -> list[tuple[str, str]]:
    """C103 of a table in which one column changes its type; the others are as they were."""
    before = with_column(pipeline(), column, old, f"CAST(get_json_object(payload, '$.x') AS {old})")
    table = before.table("requests")
    assert table is not None
    columns = tuple(replace(c, type=new) if c.name == column else c for c in table.columns)
    parse = next(m for m in before.materializations if m.name == "parse").sql
    wanted = with_table(before, replace(table, columns=columns, forward_query=forward))
    changed = parse.replace(f"CAST(get_json_object(payload, '$.x') AS {old})", expression)
    done = planned(with_sql(wanted, "parse", changed), live(before))
    return [(p.code, p.severity) for p in done.problems if p.code == "C103"]


X = "get_json_object(payload, '$.x')"
REFUSED = [("C103", "refuse")]


@pytest.mark.parametrize("name", ["x", "country_code", "retry_count", "entry_id"])
@pytest.mark.parametrize(("old", "new"), [("bigint", "double"), ("double", "smallint"), ("int", "boolean")])
def test_what_is_cut_is_refused_whatever_the_column_is_called(name: str, old: str, new: str) -> None:
    assert narrowings(name, old, new, f"CAST({X} AS {new})") == REFUSED
    assert narrowings(name, old, new, f"CAST({X} AS {new})", forward="*") == REFUSED


@pytest.mark.parametrize(
    ("expression", "excused"),
    [
        (f"try_cast({X} AS INT)", True),
        (f"coalesce(try_cast({X} AS INT), 0)", True),
        (f"CASE WHEN region = 'eu' THEN try_cast({X} AS INT) ELSE -1 END", True),
        (f"if(region = 'eu', try_cast({X} AS INT), NULL)", True),
        (f"CAST(coalesce(try_cast({X} AS INT), 0) AS INT)", True),
        (f"CAST({X} AS INT)", False),
        (f"try_cast({X} AS DOUBLE)", False),
        (f"CAST(try_cast({X} AS DOUBLE) AS INT)", False),
        (f"try_cast({X} AS INT) + 1", False),
        (f"coalesce(try_cast({X} AS INT), CAST({X} AS DOUBLE))", False),
        (f"CASE WHEN region = 'eu' THEN try_cast({X} AS INT) ELSE CAST({X} AS INT) END", False),
    ],
)
def test_only_an_outermost_try_cast_to_the_declared_type_excuses(expression: str, excused: bool) -> None:
    assert narrowings("x", "double", "int", expression) == ([] if excused else REFUSED)


def test_a_try_cast_excuses_its_own_column_alone() -> None:
    two = with_column(pipeline(), "y", "int", f"try_cast({X} AS INT)")
    region = live(with_column(pipeline(), "y", "double", f"CAST({X} AS DOUBLE)"))
    columns = tuple(replace(c, type="float") if c.name == "ms" else c for c in two.tables[1].columns)
    assert two.tables[1].name == REQUESTS.name
    sql = next(m.sql for m in two.materializations if m.name == "parse").replace(
        "'$.ms') AS DOUBLE", "'$.ms') AS FLOAT"
    )
    done = planned(with_sql(with_table(two, replace(two.tables[1], columns=columns)), "parse", sql), region)
    assert [p.message.split()[0] for p in done.refusals if p.code == "C103"] == ["requests.ms"]


@pytest.mark.parametrize(
    ("sql", "excused"),
    [
        ("SELECT try_cast(a AS INT) AS x FROM t UNION ALL SELECT try_cast(b AS INT) AS y FROM t", True),
        ("SELECT try_cast(a AS INT) AS x FROM t UNION ALL SELECT CAST(b AS INT) AS x FROM t", False),
        ("SELECT CAST(_r.x AS INT) AS x FROM (SELECT try_cast(a AS INT) AS x FROM t UNION ALL"
         " SELECT try_cast(b AS INT) FROM t) AS _r", True),
        ("SELECT CAST(_r.x AS INT) AS x FROM (SELECT try_cast(a AS DOUBLE) AS x FROM t) AS _r", False),
        ("SELECT _r.x AS x FROM (SELECT try_cast(a AS INT) AS x FROM t) AS _r", True),
        ("SELECT _r.y AS x FROM (SELECT try_cast(a AS INT) AS x, CAST(a AS INT) AS y FROM t) AS _r", False),
        ("SELECT try_cast(a AS INT) AS y FROM t", False),
    ],
)  # fmt: skip
def test_every_branch_of_a_query_must_try(sql: str, excused: bool) -> None:
    assert tries(sql, "x", "int") is excused


def test_functions_that_try_excuse_the_type_they_give() -> None:
    assert tries("SELECT try_to_date(s) AS x FROM t", "x", "date")
    assert not tries("SELECT try_to_date(s) AS x FROM t", "x", "int")
    assert not tries("SELECT try_element_at(a, 1) AS x FROM t", "x", "int")


def test_a_text_that_only_looks_like_a_try_excuses_nothing() -> None:
    sql = PARSE.replace("region AS host", "concat('try_cast', region) AS host")
    before = with_sql(pipeline(), "parse", sql)
    columns = tuple(replace(c, type="float") if c.name == "ms" else c for c in REQUESTS.columns)
    wanted = with_table(
        with_sql(before, "parse", sql.replace("AS DOUBLE", "AS FLOAT")), replace(REQUESTS, columns=columns)
    )
    assert [p.code for p in planned(wanted, live(before)).refusals] == ["C103"]
