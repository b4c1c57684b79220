"""Names that end up in data reach Spark unchanged; all others are compared without case."""

import pytest

from console.planning.sql.compile import NameScope, query
from console.planning.sql.tree import Text

KNOWN = NameScope(
    {
        "t": {
            "a": "int",
            "b": "string",
            "m": "map<string,int>",
            "s": "struct<X:int,y:string>",
            "arr": "array<struct<P:int>>",
        }
    }
)
# what is written → what is sent
SENT = {
    "m.Foo FROM t": "`t`.`m`.`Foo`",
    "x.m.Foo FROM t X": "`x`.`m`.`Foo`",
    "S.X FROM t": "`t`.`s`.`X`",
    "arr[0].P FROM t": "`t`.`arr`[0].`P`",
    "from_json(b, 'Q INT').Q FROM t": "FROM_JSON(`t`.`b`, 'Q INT').`Q`",
    "CAST(s AS STRUCT<Xx: INT, y: STRING>) FROM t": "STRUCT<`Xx`: INT, `y`: STRING>",
    "to_json(struct(A, t.B)) FROM t": "STRUCT(`t`.`a` AS `A`, `t`.`b` AS `B`)",
    "to_json(struct(Foo)) FROM (SELECT a AS Foo FROM t)": ".`foo` AS `Foo`)",
    "e.Y FROM t X LATERAL VIEW explode(arr) e AS y": "`e`.`y`",
    "to_json(struct(*)) FROM t": "STRUCT(*)",
}


@pytest.mark.parametrize("written", SENT)
def test_a_name_is_sent_as_it_is_written_where_it_is_data(written: str) -> None:
    expression, _, source = written.partition(" FROM ")
    text = Text(sql=f"SELECT {expression} AS out FROM {source}")
    done = query(text, KNOWN)
    assert done is not None, text.problems
    assert SENT[written] in done.sql


@pytest.mark.parametrize(
    "source", ["(SELECT a AS Foo FROM t)", "t JOIN (SELECT a AS Foo FROM t) q ON q.foo = t.a", "q"]
)
def test_a_struct_of_all_columns_of_a_query_is_refused_for_their_case_would_be_lost(source: str) -> None:
    text = Text(
        sql=f"WITH q AS (SELECT a AS Foo FROM t) SELECT to_json(struct(*)) AS x FROM {source}", where="e.sql:3:1"
    )
    assert query(text, KNOWN) is None
    assert [(p.code, p.where.split(":")[0]) for p in text.problems] == [("S105", "e.sql")]
    assert "name its columns" in text.problems[0].message
