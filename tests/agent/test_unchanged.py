"""Which reads show stored columns as they are, beside what the planner compiles."""

from hypothesis import given
from hypothesis import strategies as st

from console.agent.rows.unchanged import plain_read, shown_unchanged
from console.model.schema import Column
from console.planning.sql import feed
from console.record import replace
from tests.faults.rules.tables import state

NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True)


@given(NAMES)
def test_the_planners_read_of_stored_columns_is_recognised(names: list[str]) -> None:
    columns = tuple(Column(name=name, type="string") for name in names)
    compiled = replace(state("t", columns), read=feed._plain_read(columns))
    assert plain_read(names) == compiled.read
    assert shown_unchanged(compiled) == tuple(names)


def test_a_read_that_renames_computes_or_lacks_a_column_is_no_such_read() -> None:
    stored = state("t")
    assert shown_unchanged(stored) == ("n", "day")
    for read in (
        "SELECT `n` + 1 AS `n`, `day` FROM stored",
        "SELECT `n` AS `m`, `day` FROM stored",
        "SELECT `n` FROM stored",
        "SELECT `n`, `day` FROM stored WHERE `n` > 0",
        "SELECT `day`, `n` FROM stored",
    ):
        assert shown_unchanged(replace(stored, read=read)) == ()
