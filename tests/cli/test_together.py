"""`console promote` and `console rollback` of a wave, in front of regions in memory."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from console.cli.output import Output
from console.drivers.fake import FakeDriver
from console.drivers.protocol import Who
from console.errors import Unreachable
from console.model.event import Checked, Promoted
from tests.cli.conftest import CHANGE, World

pytestmark = pytest.mark.slow

WAVE = {
    f"regions/{name}.yaml": f"name: {name}\nwarehouse: w/{name}\nwave: 2\nenvironment: prod\n" for name in ("us", "eu")
}
CHECK = "requests: rows per day"


@pytest.fixture
def wave(world: World) -> World:
    """Both regions of wave 2 wait at their gates."""
    world.write(WAVE)
    assert world.call("apply", "--yes", "--quiet").exit_code == 0
    world.write(CHANGE)
    return at_gates(world)


def at_gates(world: World) -> World:
    done = world.call("apply", "--no-input")
    assert done.exit_code == 3, done.output
    return world


def live(world: World) -> dict[str, str]:
    return {name: region.disk.live for name, region in world.regions.items()}


def document(world: World, *words: str) -> tuple[int, dict[str, Any]]:
    done = world.call(*words, "--output", "json")
    return done.exit_code, json.loads(done.stdout)


def closed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The gate of this region closes between the look at it and its promotion."""
    promote = FakeDriver.promote

    async def late(driver: FakeDriver, pipeline: str, rollout: str, at: str, who: Who) -> Promoted:
        if driver.region.name == name:
            driver.world.disk.keep(Checked(table="requests", check="rows per day", ok=False, detail="70 → 69"))
        return await promote(driver, pipeline, rollout, at, who)

    monkeypatch.setattr(FakeDriver, "promote", late)


def opened(world: World, name: str) -> None:
    world.regions[name].disk.keep(Checked(table="requests", check="rows per day", ok=True, detail="equal"))


def test_a_wave_is_promoted_at_once_and_its_skew_is_text_and_figures(wave: World) -> None:
    code, said = document(wave, "promote", "--regions", "@wave2", "--yes")
    assert (code, said["complete"], said["promoted"], live(wave)) == (0, True, 2, {"us": "r2", "eu": "r2"})
    assert 0 <= said["skew"]["least_seconds"] <= said["skew"]["most_seconds"]
    assert [(each["end"], each["version"] > 0, each["sent"] < each["known"]) for each in said["regions"]] == [
        ("promoted", True, True)
    ] * 2
    again = wave.call("promote", "--regions", "@wave2", "--yes")
    assert (again.exit_code, again.stdout.count("r2 was live already")) == (0, 2), again.output
    assert wave.call("rollback", "--regions", "@wave2", "--yes").exit_code == 0
    at_gates(wave)
    done = wave.call("promote", "--regions", "eu,us", "--yes")
    assert "us: r3 is live (was r1)\n" in done.stdout
    assert "2 regions flipped at most 0." in done.stdout


def cases(world: World) -> dict[str, set[str]]:
    """Of `p.xml`: each region, and its cases that failed."""
    suites = ElementTree.parse(world.root / "p.xml").getroot().iter("testsuite")
    return {
        str(suite.get("name")): {
            str(case.get("name")) for case in suite.iter("testcase") if case.find("failure") is not None
        }
        for suite in suites
    }


def test_the_report_of_a_promotion_has_its_skew_and_the_cases_of_each_region(wave: World) -> None:
    files = ("--report", str(wave.root / "p.html"), "--junit", str(wave.root / "p.xml"))
    done = wave.call("promote", "--regions", "@wave2", "--yes", *files)
    assert done.exit_code == 0, done.output
    page = (wave.root / "p.html").read_text()
    printed = next(line for line in done.stdout.splitlines() if "flipped" in line)
    assert f"promotion: {printed}" in page
    assert page.count("✓ passed") >= 2
    assert "console promote" in page
    assert not set().union(*cases(wave).values())
    assert len(cases(wave)) == 2


@pytest.mark.parametrize("regions", ["@wave2", "eu"])
def test_the_report_of_a_refused_promotion_names_the_region_and_why(wave: World, regions: str) -> None:
    wave.scripts["eu"].inconclusive = ("requests",)
    assert wave.call("retry", "--region", "eu").exit_code == 0
    files = ("--report", str(wave.root / "p.md"), "--junit", str(wave.root / "p.xml"))
    refused = wave.call("promote", "--regions", regions, "--yes", *files)
    assert (refused.exit_code, live(wave)) == (3, {"us": "r1", "eu": "r1"})
    text = (wave.root / "p.md").read_text()
    assert "exit code: 3" in text
    assert "is inconclusive" in text
    assert "promotion:" not in text
    assert "eu" in text


def test_of_a_wave_that_is_not_ready_the_message_has_region_condition_remedy_and_the_command_without_it(
    wave: World,
) -> None:
    wave.scripts["eu"].inconclusive = ("requests",)
    assert wave.call("retry", "--region", "eu").exit_code == 0
    refused = wave.call("promote", "--regions", "@wave2", "--yes")
    assert (refused.exit_code, live(wave)) == (3, {"us": "r1", "eu": "r1"})
    assert f"error: eu: {CHECK} is inconclusive" in refused.stderr
    assert f"--accept '{CHECK}'" in refused.stderr
    assert refused.stderr.splitlines()[-2:] == [
        "nothing was promoted: eu is not ready",
        "hint: without it: console promote --regions us",
    ]
    code, said = document(wave, "promote", "--regions", "@wave2", "--yes")
    assert (code, said["complete"], said["regions"][0]["error"]["code"]) == (3, False, "E_INCONCLUSIVE")
    accept = ("--accept", CHECK, "--reason", "two late rows")
    assert wave.call("promote", "--regions", "@wave2", "--yes", *accept).exit_code == 0
    assert live(wave) == {"us": "r2", "eu": "r2"}


def test_a_region_that_is_not_at_its_gate_or_has_no_rollout_keeps_the_wave(wave: World) -> None:
    assert wave.call("cancel", "--region", "eu", "--yes").exit_code == 0
    refused = wave.call("promote", "--regions", "@wave2", "--yes")
    assert (refused.exit_code, live(wave)["us"]) == (4, "r1")
    assert "hint: console apply --regions eu" in refused.stderr


def test_without_a_terminal_and_without_yes_nothing_is_promoted(wave: World) -> None:
    refused = wave.call("promote", "--regions", "@wave2")
    assert (refused.exit_code, live(wave)) == (3, {"us": "r1", "eu": "r1"})
    assert "console promote --regions @wave2 --yes" in refused.stderr


def test_a_policy_of_never_keeps_yes_from_opening_the_wave(wave: World) -> None:
    wave.write({"regions/eu.yaml": WAVE["regions/eu.yaml"] + "policy: {promote: never}\n"})
    refused = wave.call("promote", "--regions", "@wave2", "--yes")
    assert (refused.exit_code, live(wave)["us"]) == (3, "r1")
    assert "never lets --yes open the gate" in refused.stderr


def test_of_a_wave_that_fails_in_part_the_printed_commands_finish_it(
    wave: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(monkeypatch, "eu")
    failed = wave.call("promote", "--regions", "@wave2", "--yes")
    assert (failed.exit_code, live(wave)) == (1, {"us": "r2", "eu": "r1"})
    assert f"error: eu: {CHECK}: 70 → 69" in failed.stderr
    assert failed.stderr.splitlines()[-2:] == [
        "  finish the rest: console promote --regions @wave2",
        "  return all:      console rollback --regions @wave2",
    ]
    monkeypatch.undo()
    monkeypatch.setenv("CONSOLE_HOME", str(wave.root.parent / "home"))
    shown = wave.call("status")
    assert (
        "wave 2 is live in part: us, while eu waits at its gate; the rest: console promote --regions eu; back: "
        in shown.stdout
    )
    _, said = document(wave, "status")
    (split,) = said["split_waves"]
    assert (split["live"], split["waiting"]) == (["us"], ["eu"])
    assert (split["finish"], split["return"]) == ("console promote --regions eu", "console rollback --regions us")
    opened(wave, "eu")
    finished = wave.call("promote", "--regions", "@wave2", "--yes")
    assert (finished.exit_code, live(wave)) == (0, {"us": "r2", "eu": "r2"}), finished.output
    assert "us: r2 was live already\n" in finished.stdout
    assert "eu: r2 is live (was r1)\n" in finished.stdout
    assert document(wave, "status")[1]["split_waves"] == []


def test_of_a_wave_that_fails_in_part_the_printed_commands_return_it_and_again_change_nothing(
    wave: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(monkeypatch, "eu")
    code, said = document(wave, "promote", "--regions", "@wave2", "--yes")
    assert (code, said["complete"], [each["end"] for each in said["regions"]]) == (1, False, ["refused", "promoted"])
    assert said["return"] == "console rollback --regions @wave2"
    returned = wave.call(*said["return"].split()[1:], "--yes")
    assert (returned.exit_code, live(wave)) == (0, {"us": "r1", "eu": "r1"}), returned.output
    assert "eu: left alone: r1 is live; web-2 is awaiting-confirmation" in returned.stderr
    assert "us: r1 is live (was r2)\n" in returned.stdout
    again = wave.call("rollback", "--regions", "us,eu", "--yes")
    assert (again.exit_code, live(wave)) == (0, {"us": "r1", "eu": "r1"}), again.output


def test_what_can_be_reached_is_returned_although_another_region_does_not_answer(wave: World) -> None:
    assert wave.call("promote", "--regions", "@wave2", "--yes").exit_code == 0
    wave.regions["eu"].drop_link()
    returned = wave.call("rollback", "--regions", "@wave2", "--yes")
    assert (returned.exit_code, live(wave)) == (5, {"us": "r1", "eu": "r2"}), returned.output
    wave.regions["eu"].heal()
    assert wave.call("rollback", "--regions", "@wave2", "--yes").exit_code == 0
    assert live(wave) == {"us": "r1", "eu": "r1"}
    assert wave.call("rollback", "--regions", "@wave2", "--yes").exit_code == 0  # all are back: nothing moves forward
    assert live(wave) == {"us": "r1", "eu": "r1"}


def test_a_region_that_stays_away_after_its_request_is_exit_5_with_both_ways_on(
    wave: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.runner.together.barrier.ASKED_AGAIN_SECONDS", 0.0)
    promote = FakeDriver.promote

    async def lost(driver: FakeDriver, pipeline: str, rollout: str, at: str, who: Who) -> Promoted:
        if driver.region.name == "eu":
            raise Unreachable("eu: the connection was lost", region="eu")
        return await promote(driver, pipeline, rollout, at, who)

    monkeypatch.setattr(FakeDriver, "promote", lost)
    code, said = document(wave, "promote", "--regions", "@wave2", "--yes")
    assert (code, [each["end"] for each in said["regions"]]) == (5, ["unknown", "promoted"])


@pytest.mark.parametrize(("typed", "code"), [("wave 2\n", 0), ("us\n", 3)])
def test_where_a_person_can_be_asked_one_answer_with_the_waves_name_promotes_all(
    wave: World, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr(Output, "may_ask", True)
    answered = wave.call("promote", "--regions", "@wave2", input=typed)
    assert answered.exit_code == code, answered.output
    assert answered.stderr.count("type wave 2 to promote") == 1
    assert answered.stderr.count("requests rows per day: ok") == 2  # both gates are shown
    assert set(live(wave).values()) == {"r2" if code == 0 else "r1"}
