"""`console note` in front of regions in memory: where a note is shown afterwards, and which texts are refused."""

import json

import pytest

from console.model.event import Logged
from console.model.note import NOTE_CHARACTERS, Noted
from tests.cli.conftest import World

TEXT = "waits for Ana: the source moves at 14:00Z"
HOSTILE = "\x1b[31mred\x1b[0m \u202egnp.exe [bold]x[/] ::error::y password=hunter22"


@pytest.fixture
def waiting(deployed: World) -> World:
    """The canary waits at its gate with a second release."""
    assert deployed.call("apply", "--regions", "us", "--no-input").exit_code == 3
    return deployed


def stored(world: World, region: str) -> list[Noted]:
    events = [recorded.event for recorded in world.regions[region].disk.stored]
    return [e.incident for e in events if isinstance(e, Logged) and isinstance(e.incident, Noted)]


@pytest.mark.slow
def test_a_note_stands_in_status_history_and_show_and_changes_nothing_else(waiting: World) -> None:
    before = waiting.regions["us"].disk.status
    done = waiting.call("note", "--region", "us", *TEXT.split())
    assert (done.exit_code, done.stdout) == (0, f"us: noted with {before.rollout}\n"), done.output
    after = waiting.regions["us"].disk.status
    assert (after.state, after.changed, after.held, after.plan) == (before.state, before.changed, "", before.plan)
    assert [note.text for note in stored(waiting, "us")] == [TEXT]
    for words in (["status", "--region", "us"], ["history"], ["show", before.rollout, "--region", "us"]):
        shown = waiting.call(*words)
        assert TEXT in shown.stdout, words
    (region,) = json.loads(waiting.call("status", "--region", "us", "--output", "json").stdout)["regions"]
    assert [note["text"] for note in region["status"]["notes"]] == [TEXT]
    assert any(TEXT in line for line in region["status"]["log"])
    rollouts = json.loads(waiting.call("history", "--region", "us", "--output", "json").stdout)["rollouts"]
    assert [[note["text"] for note in rollout["notes"]] for rollout in rollouts] == [[TEXT], []]


def test_a_region_at_rest_takes_a_note_too_and_one_without_a_rollout_refuses_it(world: World) -> None:
    refused = world.call("note", "--region", "us", TEXT)
    assert refused.exit_code == 4
    assert "there has been no rollout" in refused.stderr
    assert world.call("apply", "--yes", "--quiet").exit_code == 0
    data = json.loads(world.call("note", "--regions", "us,eu", TEXT, "--output", "json").stdout)
    assert [(entry["region"], entry["note"]) for entry in data["regions"]] == [("us", TEXT), ("eu", TEXT)]
    assert world.regions["us"].disk.status.state == "live"


@pytest.mark.slow
def test_a_hostile_note_steers_no_terminal_and_carries_no_secret(waiting: World) -> None:
    assert waiting.call("note", "--region", "us", HOSTILE).exit_code == 0
    for words in (["status"], ["history"], ["show", waiting.regions["us"].disk.status.rollout, "--region", "us"]):
        shown = waiting.call(*words).stdout
        assert "\\x1b[31mred" in shown
        assert not {"\x1b", "\u202e"} & set(shown)
        assert "hunter22" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("",), (" \n ",), ("x" * (NOTE_CHARACTERS + 1),)])
def test_what_is_no_note_is_refused_before_any_region_is_asked(words: tuple[str, ...], waiting: World) -> None:
    refused = waiting.call("note", "--region", "us", *words)
    assert refused.exit_code == 64
    assert stored(waiting, "us") == []


@pytest.mark.slow
def test_regions_have_to_be_named_and_one_that_is_away_is_5(waiting: World) -> None:
    assert waiting.call("note", TEXT).exit_code == 64
    assert waiting.call("note", "--region", "us", TEXT, "--readonly").exit_code == 64
    waiting.regions["us"].reachable = False
    away = waiting.call("note", "--regions", "us,eu", TEXT)
    assert away.exit_code == 5
    assert "eu: noted with" in away.stdout
