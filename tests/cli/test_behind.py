"""`--continue-without` from the command line: the wave ends, the region stays behind, and catches up later by its own plan."""

import json
from pathlib import Path

import pytest

from console.drivers.fake import FakeRegion
from console.drivers.protocol import RegionState
from console.errors import no_warehouse
from console.model.live import Live
from tests.cli.conftest import CHANGE, World

pytestmark = pytest.mark.slow

NEXT = {
    name: text.replace("agent: string", "agent: string, path: string").replace(
        "'$.agent') AS agent", "'$.agent') AS agent, get_json_object(payload, '$.path') AS path"
    )
    for name, text in CHANGE.items()
}


def shown(world: World) -> dict[str, dict[str, object]]:
    done = world.call("status", "--output", "json")
    return {entry["region"]: entry for entry in json.loads(done.stdout)["regions"]}


def test_the_wave_is_finished_without_it_and_status_says_who_answers_with_what(deployed: World) -> None:
    deployed.write(CHANGE)
    deployed.regions["us"].drop_link()
    refused = deployed.call("apply", "--yes")
    assert refused.exit_code == 5
    done = deployed.call("apply", "--yes", "--continue-without", "us")
    assert done.exit_code == 0, done.output
    assert "us      behind" in done.stdout
    assert "us: unreachable; when it is back: console apply --region us" in done.stderr
    assert deployed.regions["eu"].disk.live == "r2"

    away = deployed.call("status")
    assert away.exit_code == 5
    assert "r1, last seen" in away.stdout
    deployed.regions["us"].heal()
    both = shown(deployed)
    assert {name: (entry["live"], entry["behind"]) for name, entry in both.items()} == {
        "us": ("r1", True),
        "eu": ("r2", False),
    }
    assert "us: behind: r1 is live there, which is not what the files declare" in deployed.call("status").stdout


def test_a_region_whose_disk_is_not_mounted_is_gone_on_without_as_well(deployed: World) -> None:
    class Unmounted(FakeRegion):
        def survey(self) -> Live:
            raise no_warehouse("us", "/mnt/us")

        def state(self) -> RegionState:
            raise no_warehouse("us", "/mnt/us")

    deployed.write(CHANGE)
    deployed.regions["us"].__class__ = Unmounted
    assert deployed.call("apply", "--yes").exit_code == 65
    done = deployed.call("apply", "--yes", "--continue-without", "us")
    assert done.exit_code == 0, done.output
    assert "us      behind" in done.stdout
    assert deployed.regions["eu"].disk.live == "r2"


def test_on_return_it_is_planned_against_its_own_release_with_all_that_it_missed(deployed: World) -> None:
    us = deployed.regions["us"]
    us.drop_link()
    for change in (CHANGE, NEXT):
        deployed.write(change)
        assert deployed.call("apply", "--yes", "--continue-without", "us").exit_code == 0
    assert deployed.regions["eu"].disk.live == "r3"
    us.heal()
    done = deployed.call("apply", "--yes")
    assert done.exit_code == 0, done.output
    assert us.disk.live == "r2"
    release = us.disk.manifests["r2"].table("requests")
    assert release is not None
    assert [column.name for column in release.table.columns] == ["id", "ts", "day", "agent", "path"]
    assert {entry["behind"] for entry in shown(deployed).values()} == {False}


def test_a_region_that_comes_back_in_the_middle_is_not_carried_by_a_plan_that_nobody_read(
    deployed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.write(CHANGE)
    us, eu = deployed.regions["us"], deployed.regions["eu"]
    there = iter([False])  # away for the planning, there from then on
    surveyed: list[str] = []

    class Back(FakeRegion):
        def survey(self) -> Live:
            surveyed.append(self.region.name)
            return super().survey()

    monkeypatch.setattr(Back, "reachable", property(lambda _: next(there, True)), raising=False)
    us.__class__ = Back
    done = deployed.call("apply", "--yes", "--continue-without", "us")
    assert done.exit_code == 0, done.output
    assert surveyed, "it was there again"
    assert "us      behind" in done.stdout
    assert (us.disk.live, eu.disk.live) == ("r1", "r2")


@pytest.mark.parametrize("words", [("--continue-without", "mars"), ("--region", "eu", "--continue-without", "us")])
def test_only_regions_that_are_worked_on_can_be_gone_on_without(words: tuple[str, ...], deployed: World) -> None:
    done = deployed.call("apply", *words)
    assert done.exit_code == 64
    assert "is not one of the chosen regions" in done.stderr


def test_all_of_them_away_is_no_run(deployed: World) -> None:
    deployed.write(CHANGE)
    for region in deployed.regions.values():
        region.drop_link()
    done = deployed.call("apply", "--yes", "--continue-without", "us,eu")
    assert done.exit_code == 5
    assert "all regions are unreachable: us, eu" in done.stderr


def test_a_saved_plan_is_carried_without_a_region_that_is_away(deployed: World, tmp_path: Path) -> None:
    deployed.write(CHANGE)
    file = str(tmp_path / "change.json")
    assert deployed.call("plan", "--out", file).exit_code == 0
    deployed.regions["us"].drop_link()
    done = deployed.call("apply", file, "--yes", "--continue-without", "us")
    assert done.exit_code == 0, done.output
    assert deployed.regions["eu"].disk.live == "r2"


def test_headless_takes_the_same_flags(deployed: World) -> None:
    deployed.write(CHANGE)
    deployed.regions["us"].drop_link()
    done = deployed.call("--headless", "--yes", "--continue-without", "us", "--on-failure", "discard")
    assert done.exit_code == 0, done.output
