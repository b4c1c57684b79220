"""The gate from the command line: what people declare there, in front of regions in memory."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from console.drivers.fake import FakeDriver
from console.drivers.protocol import Who
from console.errors import DataError
from console.model.consent import Approved
from console.model.gate import verdicts
from tests.cli.conftest import FILES, World

CHECK = "requests: rows per day"


def at_gate(world: World, policy: str = "", **script: Any) -> World:
    """us waits at its gate; policy of its file, behaviour of its agent."""
    if policy:
        world.write({"regions/us.yaml": FILES["regions/us.yaml"] + f"policy: {{{policy}}}\n"})
    for name, value in script.items():
        setattr(world.scripts["us"], name, value)  # its agent reads it whenever it acts
    done = world.call("apply", "--regions", "us", "--no-input")
    assert done.exit_code == 3, done.output
    return world


def approve_as(world: World, name: str) -> None:
    """Another person, on another machine."""
    asyncio.run(_approve_as(world, name))


async def _approve_as(world: World, name: str) -> None:
    region = world.regions["us"]
    declared = Approved(checks=verdicts(region.disk.status))
    await FakeDriver(region).declare("web", region.disk.status.rollout, declared, Who(name, "elsewhere"))


def region_of(world: World) -> dict[str, Any]:
    (region,) = json.loads(world.call("status", "--region", "us", "--output", "json").stdout)["regions"]
    return dict(region)


def promoted(world: World) -> bool:
    return world.regions["us"].disk.status.state == "live"


@pytest.mark.slow
def test_an_inconclusive_check_keeps_the_gate_closed_until_a_person_accepts_it_by_name_with_a_reason(
    deployed: World, tmp_path: Path
) -> None:
    world = at_gate(deployed, inconclusive=("requests",))
    refused = world.call("promote", "--region", "us", "--yes")
    assert (refused.exit_code, promoted(world)) == (3, False)
    assert f"--accept '{CHECK}' --reason TEXT" in refused.stderr
    states = [(c["name"], c["state"]) for c in region_of(world)["gate"]["conditions"]]
    assert (CHECK, "inconclusive") in states
    for words in (["--accept", CHECK], ["--reason", "why"], ["--accept", "requests: sums", "--reason", "why"]):
        assert world.call("promote", "--region", "us", "--yes", *words).exit_code == 64, words
    assert not promoted(world)
    done = world.call(
        "promote", "--region", "us", "--yes", "--accept", "requests rows per day", "--reason", "a new table"
    )
    assert (done.exit_code, promoted(world)) == (0, True), done.output
    rollout, junit = world.regions["us"].disk.status.rollout, tmp_path / "junit.xml"
    assert world.call("status", "--region", "us", "--junit", str(junit)).exit_code == 0
    for words in (["status", "--region", "us"], ["show", rollout, "--region", "us"]):
        assert "a new table" in world.call(*words).stdout, words
    (case,) = ElementTree.parse(junit).iterfind(f".//testcase[@name='{CHECK}']/skipped")
    assert "a new table" in case.attrib["message"]


def test_a_check_that_differs_is_accepted_by_nobody(deployed: World) -> None:
    deployed.scripts["us"].differ = ("requests",)
    assert deployed.call("apply", "--regions", "us", "--no-input").exit_code == 1
    refused = deployed.call("promote", "--region", "us", "--yes", "--accept", CHECK, "--reason", "why")
    assert (refused.exit_code, promoted(deployed)) == (1, False)
    assert deployed.regions["us"].disk.status.consent.accepted == ()


@pytest.mark.slow
def test_two_approvals_are_counted_by_the_region_and_checks_that_run_again_void_them(deployed: World) -> None:
    world = at_gate(deployed, "approvals: 2")
    assert "P050" not in world.call("plan", "--region", "us").output
    assert (refusal := world.call("promote", "--region", "us", "--yes")).exit_code == 3
    assert "0 of 2 identities" in refusal.stderr
    once = world.call("approve", "--region", "us")
    assert (once.exit_code, "1 of 2 approvals" in once.stdout) == (0, True), once.output
    again = json.loads(world.call("approve", "--region", "us", "--output", "json").stdout)["regions"][0]
    assert (len(again["approved_by"]), again["required"], again["gate"]["open"]) == (1, 2, False)
    assert world.call("promote", "--region", "us", "--yes").exit_code == 3
    approve_as(world, "bob@elsewhere")
    assert region_of(world)["gate"]["open"]
    assert "records of who said what" in world.call("status", "--region", "us").stdout
    assert world.call("retry", "--region", "us").exit_code == 0
    assert world.call("apply", "--regions", "us", "--no-input").exit_code == 3
    refused = world.call("promote", "--region", "us", "--yes")
    assert (refused.exit_code, promoted(world), "void" in refused.stderr) == (3, False, True)
    assert world.call("approve", "--region", "us").exit_code == 0
    approve_as(world, "bob@elsewhere")
    assert (world.call("promote", "--region", "us", "--yes").exit_code, promoted(world)) == (0, True)
    assert "approved" in world.call("show", world.regions["us"].disk.status.rollout, "--region", "us").stdout


@pytest.mark.slow
def test_a_required_ticket_is_named_at_the_promotion(deployed: World) -> None:
    world = at_gate(deployed, "ticket: required")
    refused = world.call("promote", "--region", "us", "--yes")
    assert (refused.exit_code, "--ticket TEXT" in refused.stderr) == (3, True)
    assert world.call("promote", "--region", "us", "--yes", "--ticket", "OPS-7").exit_code == 0
    assert world.regions["us"].disk.status.consent.ticket == "OPS-7"
    assert "OPS-7" in world.call("show", world.regions["us"].disk.status.rollout, "--region", "us").stdout


@pytest.mark.slow
def test_the_policy_auto_opens_the_gate_of_a_rollout_where_every_check_passed(deployed: World) -> None:
    deployed.write({"regions/us.yaml": FILES["regions/us.yaml"] + "policy: {promote: auto}\n"})
    done = deployed.call("apply", "--regions", "us", "--no-input")
    assert (done.exit_code, promoted(deployed)) == (0, True), done.output
    assert deployed.regions["us"].disk.status.decided_by == "the agent, as its region's policy says"


@pytest.mark.slow
def test_the_policy_auto_opens_no_gate_that_a_person_has_to_judge(deployed: World) -> None:
    world = at_gate(deployed, "promote: auto", inconclusive=("requests",))
    assert (promoted(world), region_of(world)["gate"]["opens_itself"]) == (False, False)


@pytest.mark.slow
def test_the_policy_auto_opens_no_gate_without_its_approvals(deployed: World) -> None:
    world = at_gate(deployed, "promote: auto, approvals: 1")
    assert not promoted(world)
    assert "0 of 1 identities" in world.call("status", "--region", "us").stdout


@pytest.mark.slow
def test_an_agent_that_knows_no_declarations_refuses_them_and_promotes_nothing(
    deployed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = at_gate(deployed, inconclusive=("requests",))

    async def unknown(*_: object) -> None:
        raise DataError("us: no method 'declare'")

    monkeypatch.setattr(FakeDriver, "declare", unknown)
    refused = world.call("promote", "--region", "us", "--yes", "--accept", CHECK, "--reason", "why")
    assert (refused.exit_code, promoted(world)) == (65, False)


@pytest.mark.slow
def test_what_one_person_accepts_is_kept_where_the_approval_of_another_is_still_missing(deployed: World) -> None:
    """No hint leads in a circle: the approval is refused before the acceptance, and counts after it."""
    world = at_gate(deployed, "approvals: 1", inconclusive=("requests",))
    assert "--accept" in world.call("approve", "--region", "us").stderr
    words = ("promote", "--region", "us", "--yes", "--accept", CHECK, "--reason", "a new table")
    refused = world.call(*words)
    assert (refused.exit_code, "console approve --region us" in refused.stderr) == (3, True), refused.output
    assert f"us: accepted: {CHECK}" in refused.stderr
    assert world.call("approve", "--region", "us").exit_code == 0
    assert world.call("promote", "--region", "us", "--yes").exit_code == 0
    assert promoted(world)


@pytest.mark.slow
def test_an_approval_is_of_the_rollout_that_was_shown(deployed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from console.cli.commands.rollout import declared

    world, read = at_gate(deployed, "approvals: 1"), declared.views_of

    async def older(project: Any) -> Any:
        views, errors = await read(project)
        return [replace(view, status=replace(view.status, rollout="web-0")) for view in views], errors

    monkeypatch.setattr(declared, "views_of", older)
    refused = world.call("approve", "--region", "us")
    assert (refused.exit_code, "its gate now has another rollout" in refused.stderr) == (4, True), refused.output
    assert not world.regions["us"].disk.status.consent.approvals
