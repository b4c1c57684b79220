"""A doubled quote inside a text is one quote, as Spark 4 reads it: each row was seen to be so on Spark 4."""

import pytest
import sqlglot

from console.planning.compare import compare
from console.planning.sql.compile import NameScope, query
from console.planning.sql.dialect.quotes import single
from console.planning.sql.tree import Text
from tests.planning.world import PARSE, pipeline, planned, with_sql

KNOWN = NameScope({"t": {"s": "string"}})
READ = {
    "'O''Brien'": "O'Brien",
    "''''": "'",
    "'a''''b'": "a''b",
    "''": "",
    "'it\\'s'": "it's",
    '"a""b"': 'a"b',
    "\"it''s\"": "it''s",
    '\'say ""x""\'': 'say ""x""',
    "'a\\\\''b'": "a\\'b",
    "/* ' */ 'a''b' -- ''": "a'b",
}


@pytest.mark.parametrize("written", READ)
def test_a_text_is_what_spark_reads(written: str) -> None:
    done = query(Text(sql=f"SELECT {written} AS x FROM t"), KNOWN)
    assert done is not None
    assert sqlglot.parse_one(done.sql, read="spark").expressions[0].this == sqlglot.exp.Literal.string(READ[written])


@pytest.mark.parametrize(
    "written", ["'a' 'b'", "'a'\n'b'", "r'a''b'", "'a'\"b\"", "concat('', '')", "'open", "s || ''"]
)
def test_texts_that_only_stand_beside_each_other_are_left_as_they_are(written: str) -> None:
    assert single(written) == written


def test_places_in_a_query_stay() -> None:
    text = Text(sql="SELECT 'O''Brien' AS x, nope AS y FROM t", where="e.sql:3:1")
    assert query(text, KNOWN) is None
    assert [problem.where for problem in text.problems] == ["e.sql:3:25"]


@pytest.mark.slow
def test_feeds_and_comparisons_read_it_so() -> None:
    done = planned(with_sql(pipeline(), "parse", PARSE.replace("region AS host", "'O''Brien' AS host")))
    assert "CAST('O\\'Brien' AS STRING) AS `host`" in done.release.feeds_into("requests")[0].sql
    old, same, other = (
        "SELECT 'O''Brien' AS x FROM t",
        "SELECT 'O\\'Brien' AS x FROM t",
        "SELECT 'OBrien' AS x FROM t",
    )
    assert compare(old, same).same == ("x",)
    assert compare(old, other).changed == ("x",)
