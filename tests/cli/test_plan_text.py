"""Plans as they are printed: golden bytes, so that a change of the text is a change of a file."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from console.cli.plan.text import plan_data, plan_text, step_text, summary_line
from console.errors import Problem
from console.model.codec import decode
from console.model.plan import NodeChange, Plan
from console.model.region import Prices, Region, Spark
from console.planning.review.cost import priced
from tests.cli import sample

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def test_three_regions_of_which_two_plan_the_same() -> None:
    golden("three_regions.txt", plan_text(sample.plans()))


def test_the_steps_are_those_that_run() -> None:
    golden("explain.txt", plan_text(sample.plans()[:1], explain=True))


def test_prices_of_the_inventory_become_a_cost() -> None:
    regions = {
        "eu": Region(
            name="eu",
            warehouse="/w/eu",
            prices=Prices(core_hour=0.05, tb_read=5, currency="EUR"),
            spark=Spark("local[4]"),
        ),
        "us": Region(name="us", warehouse="/w/us"),
    }
    plans = [
        replace(
            plan,
            price=priced(plan.price, regions[plan.region]),
            everything=priced(plan.everything, regions[plan.region]),
        )
        for plan in sample.plans()[:2]
    ]
    golden("costs.txt", plan_text(plans))


def test_nothing_to_do_says_so() -> None:
    nodes = (NodeChange(kind="table", name="landing", action="keep", why="unchanged"),)
    idle = [replace(plan, nodes=nodes, steps=(), price=type(plan.price)()) for plan in sample.plans()[:2]]
    assert plan_text(idle) == "us, eu: same\n  .   landing  unchanged\n\nPlan: 2 regions, nothing to do"


def test_the_last_line_counts_regions_nodes_and_days() -> None:
    assert summary_line(sample.plans()) == "Plan: 3 regions, 2 replay, 1 metadata, 1 create, 1 drop, 37 days"


def test_a_refusal_stands_in_the_plan_and_in_its_last_line() -> None:
    problem = Problem(
        code="C104", message="bigint → int loses values", where="t.yaml:1:1", hint="write a forward_query"
    )
    text = plan_text([replace(sample.plans()[0], problems=(problem,))])
    assert "  refused C104: bigint → int loses values\n      t.yaml:1:1\n      write a forward_query" in text
    assert text.endswith("37 days; 1 refused".replace("37", "14"))


def test_json_holds_each_plan_whole() -> None:
    data = json.loads(json.dumps(plan_data(sample.plans())))
    read = [decode(Plan, {k: v for k, v in entry.items() if k != "digest"}) for entry in data["plans"]]
    assert tuple(read) == sample.plans()
    assert [entry["digest"] for entry in data["plans"]] == [plan.digest() for plan in sample.plans()]


@pytest.mark.parametrize("evil", ["\x1b]52;c;eHh4\x07", "a\rb", "\x9b2J", "\u202etxt", "x\ny"])
def test_no_foreign_control_reaches_the_terminal(evil: str) -> None:
    problem = Problem(code="C1", message=evil, where=evil, hint=evil)
    node = replace(sample.NODES[1], name=evil, why=evil)
    plan = replace(sample.plans()[2], region=evil, live=evil, nodes=(node,), problems=(problem,))
    text = plan_text([plan], explain=True)
    assert evil not in text
    assert not [char for char in text if ord(char) < 32 and char != "\n"]


def test_every_step_has_words() -> None:
    assert all(step_text(step) for step in sample.STEPS)
