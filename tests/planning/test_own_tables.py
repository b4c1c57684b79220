"""The region's own `_console` tables: a query may read them, and nothing else may."""

import pytest

from console.errors import Problems
from console.model.live import Release, TableState, Version
from console.model.receipt import LEDGER
from console.model.schema import Column, Table
from console.planning import compile_query
from console.planning.sql import compile
from console.planning.sql.compile import NameScope
from console.planning.sql.tree import Text

COLUMNS = (Column(name="id", type="string"),)
# a table of the pipeline's own by the name of one of ours
EVENTS = TableState(
    table=Table(name="events", kind="append", columns=COLUMNS),
    version=Version(content="c", path="events/c-1", columns=COLUMNS),
    read="SELECT id FROM stored",
    rows="r",
    values={},
)
RELEASE = Release(id="r1", pipeline="web", digest="d", tables=(EVENTS,), feeds=())


@pytest.mark.parametrize("table", LEDGER)
def test_each_of_them_is_read_by_its_name_and_with_all_its_columns(table: str) -> None:
    done = compile_query(f"SELECT * FROM _console.{table}", RELEASE)
    assert done.tables == (f"_console_{table}",)
    assert list(done.columns) == list(LEDGER[table])


def test_they_stand_beside_the_pipelines_tables_of_the_same_name() -> None:
    done = compile_query("SELECT e.seq, events.id FROM _console.events e JOIN events ON events.id = e.rollout", RELEASE)
    assert done.tables == ("_console_events", "events")
    assert compile_query("SELECT ops.day FROM _CONSOLE.ops", RELEASE).columns == ("day",)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM _console.rollouts",  # plans are no reader's
        "SELECT * FROM _console.ops VERSION AS OF 3",
        "SELECT * FROM spark_catalog._console.ops",
        "SELECT * FROM _console.ops.x",
        "SELECT manifest FROM _console.releases",
        "SELECT * FROM delta._console",
    ],
)
def test_no_more_than_that_can_be_asked_of_them(sql: str) -> None:
    with pytest.raises(Problems):
        compile_query(sql, RELEASE)


def test_an_endpoint_or_a_feed_that_names_one_is_refused() -> None:
    text = Text(sql="SELECT * FROM _console.ops", where="plans/web/endpoints/x.sql:1:1", node="x")
    assert compile.query(text, NameScope({"ops": {"id": "string"}})) is None
    assert [problem.code for problem in text.problems] == ["S105"]
