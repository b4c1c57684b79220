"""Edits dealt to tables: none is forgotten, and none hides another."""

from collections.abc import Callable
from pathlib import Path

import pytest

from console import project
from console.model.pipeline import Pipeline
from console.planning import PlannerCache, plan
from tests.closure import test_carried
from tests.closure.carried import Carried, files_after, files_before
from tests.closure.deal import CARRIED, OF, TOGETHER, dealt, fit
from tests.closure.facts import REGION, Facts, after_first
from tests.life.test_lost_days import written

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


@pytest.mark.parametrize("deal", [test_carried.few, test_carried.most, test_carried.rarer])
def test_what_spark_carries_takes_every_route(deal: Callable[[], list[Carried]], tmp_path: Path) -> None:
    edits, cache = deal(), PlannerCache()
    (tmp_path / "regions").mkdir()
    (tmp_path / "regions" / "eu.yaml").write_text("name: eu\nwarehouse: warehouse\n")

    def pipeline(files: dict[str, str]) -> Pipeline:
        written(tmp_path / "plans" / "web", files)
        loaded = project.load(tmp_path)
        return loaded.pipeline("web", loaded.regions[0])

    live = after_first(pipeline(files_before(edits)), Facts(gone={"past": 2}), cache)
    made = plan(pipeline(files_after(edits)), live, REGION, "test", cache)
    assert made.refusals == ()
    routes = {node.name: node.action for node in made.nodes}
    assert {routes[edit.name] for edit in edits} >= test_carried.ROUTES


def test_tables_of_three_kinds_are_carried_whose_source_has_lost_days() -> None:
    edits = (*test_carried.most(), *test_carried.rarer())
    assert len({edit.kinds[0].table for edit in edits if edit.lost}) == 3
