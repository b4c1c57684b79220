"""`* EXCEPT (…)`: its columns must exist, since nothing else would reveal a misspelt one."""

import pytest

from console.planning.sql.compile import NameScope, query
from console.planning.sql.tree import Text

KNOWN = NameScope({
    "requests": {"id": "bigint", "host": "string", "geo": "struct<city:string,country:string>"},
    "hosts": {"host": "string", "owner": "string"},
})  # fmt: skip


@pytest.mark.parametrize(
    ("star", "columns"),
    [
        ("* EXCEPT (geo, owner, h.host)", ("id", "host")),
        ("* EXCEPT (r.host, geo, r.id)", ("host", "owner")),
        ("r.* EXCEPT (GEO), owner", ("id", "host", "owner")),
    ],
)
def test_a_column_is_left_out_of_the_source_that_is_named(star: str, columns: tuple[str, ...]) -> None:
    done = query(Text(sql=f"SELECT {star} FROM requests r LEFT JOIN hosts h ON r.host = h.host"), KNOWN)
    assert done is not None
    assert done.columns == columns


@pytest.mark.parametrize(
    ("star", "code", "message"),
    [
        ("* EXCEPT (user_agnet)", "S108", "there is no column user_agnet in hosts or requests"),
        ("* EXCEPT (h.city)", "S108", "there is no column city in h"),
        ("* EXCEPT (geo.city)", "S105", "EXCEPT (geo.city) leaves out a field"),
    ],
)
def test_what_cannot_be_left_out_is_refused_with_its_place(star: str, code: str, message: str) -> None:
    text = Text(sql=f"SELECT id,\n  {star} FROM requests r LEFT JOIN hosts h ON r.host = h.host", where="e.sql:3:1")
    assert query(text, KNOWN) is None
    (problem,) = text.problems
    assert problem.code == code
    assert message in problem.message
    assert problem.where.startswith("e.sql:")
