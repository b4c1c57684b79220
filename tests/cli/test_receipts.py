"""`console history`, `show` and `verify` in front of two regions in memory."""

import asyncio
import json
import re
import signal
from typing import Any

import pytest

from console.model.receipt import Finding, Receipt
from tests.cli.conftest import World

RECEIPT = Receipt(
    rollout="web-1",
    step="backfill/requests/parse",
    target="requests",
    source="landing",
    day="2026-11-07",
    fence=12,
    position=3,
    version=4,
    rows_in=70,
    checksum_in="a-b",
    rows_out=69,
    checksum_out="c-d",
    days=2,
)


def finding(what: str, ok: bool | None, detail: str, days: tuple[str, ...] = ()) -> Finding:
    return Finding(table="requests", step="backfill/requests/parse", what=what, ok=ok, detail=detail, days=days)


EQUAL = finding("target", True, "110 rows in 2 days are equal as of version 4")
GONE = finding("source", None, "its log no longer reaches back to version 12")
DIFFERENT = finding("since", False, "version 9 (DELETE) removed rows", ("2026-11-07",))


def answer(world: World, *words: str, code: int = 0) -> Any:
    result = world.call(*words, "--output", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_history_lists_every_regions_rollouts_with_who_decided_and_how_that_is_known(deployed: World) -> None:
    result = deployed.call("history")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["region", "rollout", "began", "change", "state", "rows", "asked", "by", "decided", "by"]
    assert {line.split()[0] for line in lines[1:]} == {"us", "eu"}
    assert all("nothing → r1" in line and "live" in line and line.count("(OS user)") == 2 for line in lines[1:])
    rollouts = answer(deployed, "history", "--region", "eu")["rollouts"]
    assert [(r["region"], r["rollout"], r["release"], r["state"]) for r in rollouts] == [("eu", "web-1", "r1", "live")]
    assert rollouts[0]["identity"] == rollouts[0]["decided_identity"] == "OS user"


def test_a_fleet_without_a_past_says_so(world: World) -> None:
    assert world.call("history").stdout == "no rollout yet\n"
    assert answer(world, "history") == {"format_version": 1, "rollouts": [], "errors": {}}


@pytest.mark.slow
def test_show_has_the_decisions_the_batches_and_the_receipts(deployed: World) -> None:
    deployed.regions["eu"].receipts = {"web-1": (RECEIPT,)}
    text = deployed.call("show", "web-1", "--region", "eu").stdout
    assert re.match(r"eu: web-1: nothing → r1 live, \d+ rows carried in \d+ s\n", text)
    assert "accepted by " in text
    assert "promoted r1 by " in text
    assert "receipts of backfill/requests/parse: landing up to version 12 → requests version 4, position 3" in text
    assert "2026-11-07       70        69  a-b          c-d" in text
    shown = answer(deployed, "show", "web-1")["regions"]
    assert [region["region"] for region in shown] == ["us", "eu"]
    assert [len(region["receipts"]) for region in shown] == [0, 1]
    assert [d["decision"] for d in shown[1]["decisions"]] == ["accepted", "promoted r1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("us", "eu", "code", "verdict"),
    [
        ((EQUAL,), (EQUAL, EQUAL), 0, "eu: web-1: all 2 checks equal"),
        ((EQUAL,), (EQUAL, GONE), 0, "eu: web-1: 1 can no longer be checked"),
        ((EQUAL,), (EQUAL, DIFFERENT, GONE), 1, "eu: web-1: 1 of 3 checks differ, 1 can no longer be checked"),
    ],
)
def test_verify_exits_0_where_nothing_differs_and_1_where_something_does(
    deployed: World, us: tuple[Finding, ...], eu: tuple[Finding, ...], code: int, verdict: str
) -> None:
    deployed.regions["us"].findings, deployed.regions["eu"].findings = {"web-1": us}, {"web-1": eu}
    result = deployed.call("verify", "--rollout", "web-1")
    assert result.exit_code == code
    assert verdict in result.stdout
    regions = answer(deployed, "verify", "--rollout", "web-1", code=code)["regions"]
    assert [(r["region"], r["equal"]) for r in regions] == [("us", True), ("eu", code == 0)]
    assert [f["ok"] for f in regions[1]["findings"]] == [finding.ok for finding in eu]


@pytest.mark.slow
def test_verify_names_the_check_that_runs(deployed: World) -> None:
    deployed.regions["eu"].findings = {"web-1": (EQUAL, GONE)}
    result = deployed.call("verify", "--rollout", "web-1", "--region", "eu")
    assert "eu  1 of 2: backfill/requests/parse target" in result.stderr
    assert answer(deployed, "verify", "--rollout", "web-1", "--region", "eu")["regions"][0]["complete"] is True
    assert "1 of 2" not in deployed.call("verify", "--rollout", "web-1", "--quiet").output


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json"])
def test_ctrl_c_cancels_verify_and_shows_what_was_found(deployed: World, output: str) -> None:
    eu, us = deployed.regions["eu"], deployed.regions["us"]
    eu.findings = {"web-1": (EQUAL, DIFFERENT, GONE)}
    us.findings = {}
    seconds: list[float] = []

    async def until_interrupted(passed: float) -> None:
        seconds.append(passed)
        if len(seconds) == 3:
            signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(30 if len(seconds) == 3 else 0)

    eu.pass_time = until_interrupted
    result = deployed.call("verify", "--rollout", "web-1", "--output", output)
    assert result.exit_code == 130
    assert "cancelled in eu; console verify --rollout web-1 starts over" in result.stderr
    if output == "json":
        regions = json.loads(result.stdout)["regions"]
        assert [(r["region"], r["complete"], len(r["findings"])) for r in regions] == [
            ("us", True, 0),
            ("eu", False, 2),
        ]
    else:
        assert "eu: web-1: cancelled after 2 checks, 1 of 2 checks differ" in result.stdout
        assert "DIFFERS  backfill/requests/parse since" in result.stdout


@pytest.mark.slow
def test_a_region_that_cannot_be_reached_is_5_and_a_difference_elsewhere_is_still_told(deployed: World) -> None:
    deployed.regions["us"].reachable = False
    for words in (["history"], ["show", "web-1"], ["verify", "--rollout", "web-1"]):
        result = deployed.call(*words)
        assert result.exit_code == 5, words
        assert "error: us: no route to the region" in result.stderr
        assert "web-1" in result.stdout
    deployed.regions["eu"].findings = {"web-1": (DIFFERENT,)}
    assert deployed.call("verify", "--rollout", "web-1").exit_code == 1


@pytest.mark.slow
def test_a_rollout_that_no_region_knows_is_a_usage_error(deployed: World) -> None:
    for words in (["show", "web-11"], ["verify", "--rollout", "web-11"]):
        result = deployed.call(*words)
        assert (result.exit_code, result.stdout) == (64, "")
        assert "did you mean web-1?" in result.stderr


@pytest.mark.slow
def test_what_a_region_says_steers_no_terminal(deployed: World) -> None:
    deployed.regions["eu"].findings = {
        "web-1": (Finding(table="t", step="s", what="since", ok=False, detail="\x1b[31m\n::error::x"),)
    }
    result = deployed.call("verify", "--rollout", "web-1", "--region", "eu")
    assert "\x1b" not in result.stdout
    assert "\n::" not in result.stdout
