"""The table of actions and the modules of the routes: one row and one module each, and no list beside them."""

from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from console.model import plan as model
from console.model.plan import ACTIONS, Action
from console.planning.routes import ROUTES, change
from console.planning.routes.change import Change
from console.planning.routes.verdict import Verdict
from tests.planning.world import node, pipeline, planned, with_column

MODULES = Path(change.__file__).parent
SHARED = {"of_states", "__init__", "change", "reasons", "verdict"}


def test_every_action_has_a_row_and_a_module_of_its_name() -> None:
    assert set(ACTIONS) == set(get_args(Action)) == {path.stem for path in MODULES.glob("*.py")} - SHARED


def test_the_routes_are_tried_in_the_order_of_the_table_and_each_judges_a_change() -> None:
    tried = sorted((traits.tried, action) for action, traits in ACTIONS.items() if traits.tried)
    assert [place for place, _ in tried] == list(range(1, len(tried) + 1))
    assert [getattr(route, "__name__", "").rpartition(".")[2] for route in ROUTES] == [name for _, name in tried]
    for route in ROUTES:
        hints = get_type_hints(route.verdict)
        assert hints["change"] is Change
        assert hints["return"] in (Verdict, Verdict | None)


def test_the_table_says_what_moves_rows_and_what_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wider = with_column(pipeline(), "agent", "string", "get_json_object(payload, '$.agent')")
    assert node(planned(wider), "requests") in planned(wider).changes
    monkeypatch.setitem(model.ACTIONS, "replay", replace(ACTIONS["replay"], changes=False))
    assert node(planned(wider), "requests") not in planned(wider).changes
