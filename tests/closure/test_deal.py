"""Edits dealt to tables: none is forgotten, and none hides another."""

import pytest

from tests.closure.deal import CARRIED, OF, TOGETHER, dealt, fit

pytestmark = pytest.mark.slow
HIDDEN = (
    ("hits", "a column dropped", "a column renamed"),  # both of one column
    ("hits", "a column from its source", "a column from its source, with a default"),
    ("hits", "a wider type", "a wider type by a cast"),
    ("hourly", "a key dropped", "a key dropped"),
    ("last", "another order", "every row"),
    ("last", "its key renamed", "another partition_by"),
    ("last", "another key", "a column dropped"),  # which is part of it
)


def test_each_edit_is_dealt_to_one_table() -> None:
    made = dealt("1", CARRIED)
    assert sorted(map(str, CARRIED)) == sorted(str(kind) for one in made for kind in one.kinds)
    assert all(len({kind.table for kind in one.kinds}) == 1 and len(one.kinds) <= TOGETHER for one in made)
    assert len(made) < len(CARRIED) * 0.6


def test_a_table_never_gets_edits_that_hide_each_other() -> None:
    for table, *names in HIDDEN:
        assert not fit(tuple(OF[table, name] for name in names)), names
    for one in dealt("2", CARRIED):
        assert fit(one.kinds), one
        assert one.old != one.new
