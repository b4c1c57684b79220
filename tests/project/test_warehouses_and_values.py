"""Warehouses stay inside their bounds; types, durations, sizes and defaults have one normal form."""

from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import pytest
from conftest import Write
from hypothesis import given
from hypothesis import strategies as st

from console.errors import Problems
from console.project import load, values
from console.project.names import nearest, wrong_column, wrong_name, wrong_parameter
from console.project.regions import place_of


def test_a_warehouse_is_a_place_below_the_project_an_absolute_path_or_a_uri(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    good = {
        "lake/eu": f"{root}/lake/eu",
        "./lake//eu/": f"{root}/lake/eu",
        "/srv//lake/": "/srv/lake",
        "file:///srv/my%20lake": "/srv/my lake",
        "FILE:///srv": "/srv",
        "/w {a,b}*?%/ü#1": "/w {a,b}*?%/ü#1",
        "s3://acme/web/": "s3://acme/web",
        "abfss://c@a.dfs.core.windows.net/x": "abfss://c@a.dfs.core.windows.net/x",
    }
    for text, place in good.items():
        assert place_of(text, root, remote=False) == (place, "", "")
    (root / "out").symlink_to("/tmp")
    bad = ["", " ", ".", "..", "../x", "lake/../../x", "/srv/../etc", "s3://a/../b", "s3://a/%2e%2e/b", "file:///a/..",
           "out/x", "~/x", "~root", "C:\\lake", "C:/lake", "a\\b", "file://host/x", "file:///%00", "/a\x00b", "a\nb",
           "/w[1]", "lake/w]", "/w^", "/w|", "/w%41", "file:///w%5B1%5D", "s4://a", "http://a/b", "s3://", "/", "//", "\x1b[2J"]  # fmt: skip
    for text in bad:
        assert place_of(text, root, remote=False)[1], text
    (root / "lake[1]").mkdir()
    (root / "behind").symlink_to(root / "lake[1]")
    for text in ("behind", f"{root}/behind/eu"):
        assert "`[`" in place_of(text, root, remote=False)[1]
    assert place_of(f"{root}/behind", root, remote=True)[1] == ""  # a link of another machine
    assert place_of("lake/eu", root, remote=True)[1]
    assert place_of("/srv/lake", root, remote=True) == ("/srv/lake", "", "")


SSH = "transport: {ssh: {host: far.example.net}}"
REFUSED = {
    "gs://lake/eu": "is an object store other than S3",
    "s3a://lake/eu\nspark: {master: 'k8s://https://host:6443'}": "is in a bucket, and its Spark is neither a local one nor a standalone cluster",
    "lake/us\nspark: {master: yarn}": "is on a disk, and the tasks of YARN run on other hosts",
    "lake/us\nspark: {master: 'k8s://https://host:6443'}": "is on a disk, and the tasks of Kubernetes run in pods",
    "lake/us\nspark: {remote: 'sc://host'}": "is on a disk, which a Spark Connect server may not see",
    "lake/us\nbackfill_spark: {master: yarn}": "`backfill_spark` yarn: ",
    "lake/us\nbackfill_spark: {remote: 'sc://host'}": "`backfill_spark` sc://host: ",
    "s3://lake/eu\nbackfill_spark: {master: yarn}": "`backfill_spark` yarn: ",
    "s3://lake/eu\nbackfill_spark: {remote: 'sc://host'}": "through Spark Connect no second Spark is tried",
    "s3://lake/eu\nspark: {remote: 'sc://host'}\nbackfill_spark: {master: 'local[8]'}": "a `backfill_spark` beside Spark Connect was never tried",
}


@pytest.mark.parametrize(
    "text",
    [
        "s3://lake/eu",
        "s3a://lake/eu\nspark: {master: 'local[4]'}",
        f"s3://lake/eu\n{SSH}",
        "s3://lake/eu\nspark: {remote: 'sc://host'}",
        "s3://lake/eu\nspark: {master: 'spark://127.0.0.1:7077'}",
        "lake/us",
        "lake/us\nspark: {master: 'spark://host:7077'}",
        "lake/us\nbackfill_spark: {master: 'spark://host:7077'}",
        "s3://lake/eu\nbackfill_spark: {master: 'local[8]'}",
        *REFUSED,
    ],
)
def test_a_region_whose_agent_would_not_start_is_refused_in_its_plans(project: Write, text: str) -> None:
    region = load(project({"regions/us.yaml": f"warehouse: {text}\n"})).region("us")
    refused = [problem for problem in region.ineffective if problem.severity == "refuse"]
    assert [problem.code for problem in refused] == (["P043"] if text in REFUSED else [])
    assert all(REFUSED[text] in problem.message for problem in refused)


@pytest.mark.slow
def test_two_regions_never_share_a_warehouse_however_it_is_spelt(project: Write) -> None:
    root = project({}).resolve()
    (root / "alias").symlink_to(root / "lake")
    shared = ["lake/eu", f"{root}/alias/eu", f"file://{root}/lake/eu/", "alias/eu", "lake", "lake/eu/deeper"]
    for text in shared:
        with pytest.raises(Problems, match=r"regions eu and us have the same|of eu and us are nested") as error:
            load(project({"regions/us.yaml": f"warehouse: {text}\n"}))
        assert "regions/eu.yaml" in error.value.problems[0].hint
    for text in ["lake/euro", f"{root}/lake/eu\n{SSH}", "s3://lake/eu"]:
        assert len(load(project({"regions/us.yaml": f"warehouse: {text}\n"})).regions) == 2
    for other in ["s3a://lake/eu", "s3://lake/eu/deeper", f"s3://lake/eu\n{SSH}"]:
        files = {"regions/us.yaml": "warehouse: s3://lake/eu\n", "regions/ap.yaml": f"warehouse: {other}\n"}
        with pytest.raises(Problems, match=r"have the same|are nested"):
            load(project(files))


@pytest.mark.parametrize("name", ["a`; DROP TABLE x; --", "a'", "a\n", "a\x00", "", "a" * 64, "аb", "\u202ea", "delta.x",
                                  "..", "-a", "1a", "A", "saved", "stored", "a b", "a/b", "_a"])  # fmt: skip
def test_a_name_of_ours_is_plain(name: str) -> None:
    assert wrong_name(name)
    assert wrong_parameter(name) or name in ("saved", "stored")


@pytest.mark.parametrize("file", ["plans/web/tables/stored.yaml", "plans/stored/pipeline.yaml"])
def test_what_is_named_like_a_view_of_the_agents_is_refused_and_not_left_out(project: Write, file: str) -> None:
    with pytest.raises(Problems, match="`stored` is a reserved name"):
        load(project({file: "columns: {n: int}\n"}))


def test_foreign_columns_may_be_named_almost_anything_and_ours_what_delta_stores() -> None:
    assert not wrong_name("a" * 63)
    for name in ("a b", "ünï", "`x`", "a'b", "x.y", "a;b"):
        assert not wrong_column(name, ours=False)
    for name in ("a b", "a;b", "a=b", "a(b"):
        assert wrong_column(name, ours=True)
    for name in ("", "a\nb", "\x1b[m", "\u202e", "x" * 256, "a\x00"):
        assert wrong_column(name, ours=False)


SIMPLE = st.sampled_from(["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
                          "timestamp", "timestamp_ntz"])  # fmt: skip
DECIMAL = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"decimal({p},{s})"))
FIELD = st.sampled_from(["a", "Bc", "d_1", "`x y`"])


def _nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    structs = st.dictionaries(FIELD, inner, min_size=1, max_size=3)
    return (
        inner.map(lambda t: f"array<{t}>")
        | st.tuples(SIMPLE, inner).map(lambda pair: f"map<{pair[0]},{pair[1]}>")
        | structs.map(lambda fields: f"struct<{','.join(f'{name}:{kind}' for name, kind in fields.items())}>")
    )


TYPES = st.recursive(SIMPLE | DECIMAL, _nest, max_leaves=6)


@pytest.mark.slow
@given(TYPES, st.sampled_from(["", " ", "  "]))
def test_a_type_is_read_in_any_spelling_and_written_in_one(kind: str, gap: str) -> None:
    assert values.spark_type(kind) == kind
    loose = (
        kind.replace("<", f"{gap}<{gap}")
        .replace(",", f"{gap},{gap}")
        .replace(">", f"{gap}>")
        .replace(":", f"{gap}:{gap}")
    )
    assert values.spark_type(f" {loose}{gap}") == kind
    shouted = kind.replace("int", "INT").replace("array", "Array").replace("string", "STRING")
    assert values.spark_type(shouted) == kind


def test_other_names_of_types_are_normalised_and_no_type_is_refused() -> None:
    names = {"integer": "int", "LONG": "bigint", "short": "smallint", "byte": "tinyint", "real": "float", "dec(5)": "decimal(5,0)",
             "numeric": "decimal(10,0)", "timestamp_ltz": "timestamp", "struct<a int, b:date>": "struct<a:int,b:date>"}  # fmt: skip
    for text, kind in names.items():
        assert values.spark_type(text) == kind
    wrong = ["", " ", "strng", "array", "array<>", "array<int", "array<int>>", "map<int>", "map<map<int,int>,int>", "int int",
             "struct<>", "struct<a>", "struct<a:int,A:int>", "decimal(39)", "decimal(5,6)", "decimal(0)", "decimal(a)",
             "varchar(5)", "variant", "int; DROP", "array<" * 1_000, "array<" * 20 + "int" + ">" * 20, "int\x00"]  # fmt: skip
    for text in wrong:
        with pytest.raises(ValueError, match=r"."):
            values.spark_type(text)


@pytest.mark.slow
@given(st.text(max_size=40))
def test_any_text_is_a_value_or_refused(text: str) -> None:
    for reader in (values.spark_type, values.seconds, values.size, values.count):
        with suppress(ValueError):  # and nothing else
            assert reader(text) is not None


@pytest.mark.slow
@given(st.integers(1, 10**9 - 1))
def test_durations_sizes_and_counts_are_exact(number: int) -> None:
    assert values.days(f"{number}d") == number
    assert values.days(f"{number * 24 % 10**9 or 24}h" if number * 24 < 10**9 else "24h") in (number, 1)
    assert values.hours(f"{number}h") == number
    assert values.seconds(f"{number}m") == number * 60
    assert values.size(f"{number} GiB") == number * 2**30
    assert values.size(f"{number}MB") == number * 10**6
    assert values.count(f"{number:_}") == values.count(number) == values.size(number) == number


@pytest.mark.parametrize("text", ["30", 30, "30 days", "-1d", "1.5d", "d", "", None, True, "1d2h", "٣d"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        values.seconds(text)


@pytest.mark.slow
@given(st.text("'\\ab\n", max_size=8))
def test_a_text_default_is_one_sql_literal(text: str) -> None:
    literal = values.literal("string", text)
    assert literal[0] == literal[-1] == "'"
    body, at = literal[1:-1], 0
    while at < len(body):  # no quote ends it early
        assert body[at] != "'"
        at += 2 if body[at] == "\\" else 1
    assert at == len(body)


@pytest.mark.slow
@given(st.integers(-(2**31), 2**31 - 1), st.dates(date(1900, 1, 1)), st.datetimes(datetime(1900, 1, 1)))
def test_simple_defaults_become_literals_of_their_type(number: int, day: date, at: datetime) -> None:
    assert values.literal("int", str(number)) == str(number)
    assert values.literal("date", day.isoformat()) == values.literal("date", f"DATE '{day}'") == f"DATE '{day}'"
    assert values.literal("timestamp", at.isoformat()) == f"TIMESTAMP '{at.isoformat()}'"
    assert values.literal("boolean", "True") == "true"


@pytest.mark.parametrize(
    ("kind", "text"),
    [("int", "1.5"), ("int", str(2**31)), ("tinyint", "128"), ("decimal(4,2)", "100"), ("decimal(4,2)", "0.001"), ("date", "x'"),
     ("double", "x"), ("double", "1e9999999999"), ("double", "nan"), ("boolean", "yes"), ("array<int>", "1"), ("binary", "x"),
     ("timestamp", "now()"), ("bigint", "٣")],
)  # fmt: skip
def test_a_default_that_is_no_value_of_its_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        values.literal(kind, text)


def test_the_nearest_name_is_near() -> None:
    assert nearest("colums", ["columns", "kind"]) == "columns"
    assert nearest("desc", ["description"]) == "description"
    assert nearest("zz", ["columns"]) == nearest("x", []) == ""
