"""`console tune` in front of regions in memory: the request sent, the refusals before it, and where the change is shown afterwards."""

import json
from typing import Any

import pytest

from console.cli.output import Output
from console.model.event import Logged
from console.model.incident import Tuned
from tests.cli.conftest import CHANGE, World


@pytest.fixture
def running(deployed: World) -> World:
    """The canary waits at its gate with a second release."""
    deployed.write(CHANGE)
    assert deployed.call("apply", "--regions", "us", "--no-input").exit_code == 3
    return deployed


def tuned(world: World, *words: str, code: int = 0) -> Any:
    result = world.call("tune", "--region", "us", *words, "--output", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)["regions"] if result.stdout else []


@pytest.mark.slow
def test_a_change_is_stored_shown_and_leaves_the_plan_as_it_was(running: World) -> None:
    plan = running.regions["us"].disk.status.plan
    (entry,) = tuned(running, "target_seconds=20", "lag=30")
    assert entry["change"] == "target_seconds 60 → 20, lag none → 30"
    assert entry["plan"] == running.regions["us"].disk.status.plan == plan
    assert entry["tuning"] == {"target_seconds": 20.0, "lag": 30.0} | {
        name: None for name in ("rows", "bytes", "hours", "zone", "query", "tables")
    }
    assert "tuned: target_seconds 60 → 20, lag none → 30, by " in running.call("status", "--region", "us").stdout
    rollout = running.regions["us"].disk.status.rollout
    shown = running.call("show", rollout, "--region", "us").stdout
    assert "tuned (target_seconds 60 → 20, lag none → 30) by " in shown
    (entry,) = tuned(running, "--reset", "rows=9000")
    assert running.regions["us"].disk.status.tuning.changed == ("rows",)
    again = running.call("tune", "--region", "us", "rows=9000")
    assert again.stdout == "us: as it was\n"
    stored = [r.event.incident for r in running.regions["us"].disk.stored if isinstance(r.event, Logged)]
    assert len([incident for incident in stored if isinstance(incident, Tuned)]) == 2


@pytest.mark.slow
def test_who_changed_what_stands_in_status_history_show_and_at_the_gate(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned(running, "lag=30")
    rollout = running.regions["us"].disk.status.rollout
    change = "lag none → 30"
    who = running.regions["us"].disk.status.by.partition(" (")[0]
    places = {
        "status": running.call("status", "--region", "us").stdout,
        "show": running.call("show", rollout, "--region", "us").stdout,
        "gate": asked_at_the_gate(running, monkeypatch),
        "handover": running.call("handover", "--region", "us").stdout,
    }
    for place, text in places.items():
        (line,) = [line.replace("\u200b", "") for line in text.splitlines() if change in line and "tuned" in line]
        assert who in line, place
    (line,) = [line for line in running.call("history").stdout.splitlines() if "tuned: lag" in line]
    assert who in line
    newest = json.loads(running.call("history", "--region", "us", "--output", "json").stdout)["rollouts"][0]
    assert newest["tuned"]["by"].startswith(who)
    shown = json.loads(running.call("show", rollout, "--region", "us", "--output", "json").stdout)["regions"][0]
    assert [d["who"] for d in shown["decisions"] if d["decision"] == f"tuned ({change})"] == [who]


def asked_at_the_gate(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(Output, "may_ask", property(lambda _: True))
    refused = world.call("promote", "--region", "us", input="no\n")
    assert refused.exit_code == 3
    return refused.stderr


@pytest.mark.slow
def test_a_query_is_compiled_before_it_is_sent(running: World) -> None:
    tuned(running, "query=SELECT count(*) > 5 FROM requests")
    tuning = running.regions["us"].disk.status.tuning
    assert tuning.tables == ("requests",)
    assert tuning.query
    for wrong in ("SELECT * FROM nowhere", "SELECT 1, 2", "DROP TABLE requests"):
        refused = running.call("tune", "--region", "us", f"query={wrong}")
        assert refused.exit_code in (64, 65), refused.output
    assert running.regions["us"].disk.status.tuning == tuning
    tuned(running, "query=none")
    assert running.regions["us"].disk.status.tuning.query == ""


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "words",
    [("rows=0",), *(pytest.param(words, marks=SLOW) for words in (("speed=9",), ("rows",), ("rows=1", "rows=2"), ()))],
)
def test_what_is_no_change_is_refused_before_any_region_is_asked(words: tuple[str, ...], running: World) -> None:
    refused = running.call("tune", "--region", "us", *words)
    assert refused.exit_code == 64
    assert "target_seconds" in refused.stderr or "rows takes" in refused.stderr
    assert running.regions["us"].disk.status.tuned is None


@pytest.mark.slow
def test_where_nothing_runs_and_where_nobody_answers(running: World) -> None:
    assert running.call("tune", "--region", "eu", "rows=900").exit_code == 4
    running.regions["us"].reachable = False
    assert running.call("tune", "--region", "us", "rows=900").exit_code == 5
