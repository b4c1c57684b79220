"""`console handover`: the facts for the next shift, from whichever regions answer, without injections by a hostile region."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from console.model.event import Failed, Paused
from console.runner.handover.facts import COMMANDS
from console.runner.outlook.attention import NeedKind
from tests.cli.conftest import World


@pytest.fixture
def waiting(deployed: World) -> World:
    """The canary waits at its gate with a second release; the other region is live with the first."""
    assert deployed.call("apply", "--regions", "us", "--no-input").exit_code == 3
    return deployed


def sections(text: str) -> dict[str, list[str]]:
    """Title → lines."""
    results: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            results[line[3:]] = []
        elif results and line:
            results[list(results)[-1]].append(line)
    return results


def answer(world: World, *words: str, code: int = 0) -> Any:
    result = world.call("handover", *words, "--output", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_the_gate_is_the_next_decision_and_every_region_stands_somewhere(waiting: World) -> None:
    waiting.call("note", "--region", "us", "waits", "for", "Ana")
    result = waiting.call("handover")
    assert result.exit_code == 0, result.output
    assert re.match(
        r"# Handover: web, \d{4}-\d\d-\d\d \d\d:\d\dZ\n\nRegions: 1 waiting, 1 at rest, written by ", result.stdout
    )
    parts = sections(result.stdout)
    assert list(parts) == ["Next decisions", "Waiting", "At rest", "Notes", "How to stop"]
    assert "**us**: at its gate" in parts["Next decisions"][0]
    assert parts["Next decisions"][0].endswith("→ `console promote --region us`")
    assert parts["Waiting"][0].startswith("- **us** (prod): awaiting-confirmation; r1 → r2 (web-2); at its gate: ")
    assert parts["At rest"][0].startswith("- **eu**: live; r1 is live")
    assert "waits for Ana" in parts["Notes"][0]
    assert [line.partition("`: ")[0] for line in parts["How to stop"]] == [
        "Closing a console stops nothing: the agents continue, up to the gate.",
        "- `console cancel --regions us",
        "- `console follow --stop --region NAME",
        "- `touch <warehouse>/_console/pause",
    ]


@pytest.mark.slow
def test_what_is_paused_or_has_failed_says_why_and_until_when(waiting: World) -> None:
    waiting.regions["us"].disk.keep(Paused("ana from desk"))
    assert "paused; r1 → r2" in waiting.call("handover").stdout
    assert "`console resume --region us`" in waiting.call("handover").stdout
    waiting.regions["us"].disk.keep(Failed("validate", "disk full", "make room"))
    data = answer(waiting)
    (decision,) = [d for d in data["decisions"] if d["region"] == "us"]
    assert (decision["cause"], decision["command"]) == ("disk full", "console retry --region us")
    assert decision["due"] > decision["since"] > 0
    assert decision["then"] == "what it built is discarded"
    (region,) = data["waiting"]
    assert "to do: make room" in region["facts"]


@pytest.mark.slow
def test_the_logs_answer_where_no_agent_runs_and_a_region_that_is_away_is_named(
    waiting: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    region = waiting.regions["us"]
    monkeypatch.setattr(region, "state", lambda state=region.state: replace(state(), attended=False))
    assert "no agent runs there: it does not continue by itself" in waiting.call("handover").stdout
    region.reachable = False
    result = waiting.call("handover")
    assert result.exit_code == 5
    assert "- **us** (prod): unreachable; us: no route to the region" in result.stdout
    assert "**eu**" in result.stdout


@pytest.mark.slow
def test_nothing_from_outside_makes_markup_and_no_secret_is_in_it(waiting: World) -> None:
    waiting.regions["us"].disk.keep(
        Failed("validate", "[x](http://evil) <img src=x> | password=hunter22 \x1b[2J @all", "`rm -rf`")
    )
    waiting.call("note", "--region", "us", "# [click](http://evil) token=abcdef123456")
    for text in (waiting.call("handover").stdout, json.dumps(answer(waiting))):
        assert "hunter22" not in text
        assert "abcdef123456" not in text
        assert "\x1b" not in text
    text = waiting.call("handover", "--output", "markdown").stdout
    assert "\\[x\\](http://evil)" in text
    assert "\\<img" in text
    assert "\n#" not in text.replace("\n## ", "").partition("\n")[2]
    assert "@all" not in text


def test_every_need_has_a_command() -> None:
    assert set(COMMANDS) == set(NeedKind)


@pytest.mark.slow
def test_where_all_is_well_it_says_so(world: World) -> None:
    assert world.call("apply", "--yes", "--quiet").exit_code == 0
    parts = sections(world.call("handover", "--region", "us").stdout)
    assert parts["Next decisions"][0] == "Nothing needs anybody now."
    assert list(parts) == ["Next decisions", "At rest", "How to stop"]
