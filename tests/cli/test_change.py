"""plan, apply, status, the gate and steering, against regions in memory."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from console import __version__
from console.cli.root import COMMANDS
from console.drivers.fake import stored_events
from console.drivers.fake.agent import FakeAgent
from console.drivers.protocol import QueryResult
from console.model.codec import decode
from console.model.event import Accepted, Entered, Promoted
from console.model.pipeline import digest
from console.model.plan import Plan
from console.planning.loss.probe import probes
from console.runner.fleet import Fleet
from tests.cli.conftest import FILES, World

pytestmark = pytest.mark.slow


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_plan_shows_what_apply_would_do_and_touches_nothing(deployed: World) -> None:
    before = [list(region.disk.stored) for region in deployed.regions.values()]
    result = deployed.call("plan")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "Plan: 2 regions, 1 replay, 4 days"
    assert "-/+" in result.stdout
    assert "+ agent string" in result.stdout
    assert [list(region.disk.stored) for region in deployed.regions.values()] == before


def test_detailed_exitcode_says_2_for_changes_and_0_for_none(deployed: World) -> None:
    assert deployed.call("plan", "--detailed-exitcode").exit_code == 2
    deployed.write(FILES)
    assert deployed.call("plan", "--detailed-exitcode").exit_code == 0


def test_apply_without_yes_ends_at_the_gate_of_the_first_wave(deployed: World) -> None:
    result = deployed.call("apply")
    assert result.exit_code == 3, result.output
    assert deployed.regions["us"].disk.status.state == "awaiting-confirmation"
    assert deployed.regions["eu"].disk.live == "r1"
    assert "console promote --region us" in result.stderr


def test_apply_with_yes_brings_every_region_live_and_again_does_nothing(deployed: World) -> None:
    result = deployed.call("apply", "--yes")
    assert result.exit_code == 0, result.output
    assert [region.disk.live for region in deployed.regions.values()] == ["r2", "r2"]
    again = deployed.call("apply", "--yes")
    assert again.exit_code == 0
    assert [len(stored_events(region, Promoted)) for region in deployed.regions.values()] == [2, 2]
    assert "unchanged" in again.stdout


def test_headless_is_the_same_run(deployed: World) -> None:
    assert deployed.call("--headless", "--regions", "us", "--yes").exit_code == 0
    assert deployed.regions["us"].disk.live == "r2"
    assert deployed.regions["eu"].disk.live == "r1"


def test_a_dry_run_only_plans(deployed: World) -> None:
    for words in (["apply", "--dry-run", "--yes"], ["--headless", "--dry-run", "--yes"]):
        result = deployed.call(*words)
        assert result.exit_code == 0
        assert "Plan: 2 regions" in result.stdout
    assert deployed.regions["us"].disk.live == "r1"


def test_the_stream_of_an_apply_is_typed_lines(deployed: World) -> None:
    result = deployed.call("apply", "--yes", "--output", "json")
    output = lines(result.stdout)
    assert {line["format_version"] for line in output} == {1}
    kinds = [line["type"] for line in output]
    assert kinds[0] == "planned_change"
    assert kinds.index("change_summary") < kinds.index("apply_start") < kinds.index("apply_complete")
    assert output[-1]["type"] == "outcome"
    assert output[-1]["exit_code"] == 0
    assert result.stderr == ""


def test_a_saved_plan_runs_as_it_was_reviewed_and_is_private(deployed: World) -> None:
    file = deployed.root / "change.json"
    assert deployed.call("plan", "--out", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert deployed.call("apply", str(file), "--yes").exit_code == 0
    assert [region.disk.live for region in deployed.regions.values()] == ["r2", "r2"]
    assert deployed.call("apply", str(file), "--yes").exit_code == 0, "what is done already is no conflict"


def test_rows_that_arrive_do_not_make_a_saved_plan_stale(deployed: World) -> None:
    file = deployed.root / "change.json"
    deployed.call("plan", "--out", str(file))
    events = "".join(f'{{"id": "{i}"}}\n' for i in range(500))
    assert deployed.call("ingest", "-", "--region", "us", input=events).exit_code == 0
    assert deployed.call("apply", str(file), "--yes").exit_code == 0


def test_a_stale_plan_is_refused_and_says_what_moved(deployed: World) -> None:
    file = deployed.root / "change.json"
    deployed.call("plan", "--out", str(file))
    deployed.call("apply", "--yes", "--regions", "us")
    deployed.write({"plans/web/sinks/dump.sql": "/*\npath: exports/dump\n*/\nSELECT id FROM requests\n"})
    result = deployed.call("apply", str(file), "--yes")
    assert result.exit_code == 4
    assert "us: the pipeline's files have changed" in result.stderr
    assert "us: the live release is r2, no longer r1" in result.stderr
    assert "eu: the pipeline's files have changed" in result.stderr
    assert deployed.regions["eu"].disk.live == "r1"


def by_another_version(file: Path, **more: object) -> None:
    """The saved plan as console 0.9.0 would have written it, with fields that only it knows."""
    body = json.loads(file.read_text())
    del body["digest"]
    body["tool"] = "console 0.9.0"
    for entry in body["plans"]:
        entry["plan"] |= {"tool": "console 0.9.0", "desired": "otherwise", **more}
        entry["digest"] = digest(entry["plan"])
    file.write_text(json.dumps({**body, "digest": digest(body)}))


@pytest.mark.parametrize("more", [{}, {"weather": "fog"}])
@pytest.mark.parametrize("words", [("--yes",), ("--dry-run",)])
def test_a_plan_of_another_version_is_stale_for_that_reason_alone(
    deployed: World, more: dict[str, object], words: tuple[str, ...]
) -> None:
    file = deployed.root / "change.json"
    deployed.call("plan", "--out", str(file))
    by_another_version(file, **more)
    result = deployed.call("apply", str(file), *words)
    assert result.exit_code == 4, result.output
    assert f"it was made by console 0.9.0, and this is console {__version__}" in result.stderr
    assert "files have changed" not in result.stderr
    assert re.search(r"console plan .*--out ", result.stderr)
    assert [region.disk.live for region in deployed.regions.values()] == ["r1", "r1"]


def test_a_tampered_plan_is_wrong_data(deployed: World) -> None:
    file = deployed.root / "change.json"
    deployed.call("plan", "--out", str(file))
    file.write_text(file.read_text().replace("parse", "prase"))
    assert deployed.call("apply", str(file), "--yes").exit_code == 65


def test_all_that_is_wrong_is_said_at_once_before_anything_is_done(world: World) -> None:
    world.write(
        {
            "plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\nSELECT idd, ts, reflect('a') FROM landing\n",
            "plans/web/sinks/dump.sql": "/*\npath: exports/dump\n*/\nSELECT id FROM requets\n",
        }
    )
    result = world.call("plan", "--output", "json")
    assert result.exit_code == 65
    problems = json.loads(result.stdout)["error"]["problems"]
    assert len(problems) >= 2
    assert all(problem["where"].count(":") == 2 for problem in problems)
    assert result.stderr.count("error: ") == len(problems)


def test_an_unreachable_region_is_5_and_wrong_files_are_65_even_then(world: World) -> None:
    assert world.call("plan").exit_code == 0
    world.regions["eu"].drop_link()
    result = world.call("plan")
    assert result.exit_code == 5
    assert result.stderr.startswith("error: eu: ")
    world.write({"plans/web/materializations/parse.sql": "/*\ninto: requests\n*/\nSELECT nope FROM landing\n"})
    assert world.call("plan").exit_code == 65


def test_promote_asks_a_person_and_without_one_exits_3(deployed: World) -> None:
    deployed.call("apply", "--regions", "us")
    refused = deployed.call("promote", "--region", "us")
    assert refused.exit_code == 3
    assert "console promote --region us --yes" in refused.stderr
    done = deployed.call("promote", "--region", "us", "--yes")
    assert done.exit_code == 0, done.output
    assert done.stdout == "us: r2 is live (was r1)\n"
    late = deployed.call("promote", "--region", "us", "--yes")
    assert late.exit_code == 4
    assert "promoted by" in late.stderr


def test_who_promotes_while_another_does_learns_who(deployed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.call("apply", "--regions", "us")
    monkeypatch.setattr(FakeAgent, "_recover_promotion", lambda _: None)  # it is not broken off
    deployed.regions["us"].disk.keep(Entered("promoting", by="eve@desk"))
    for words in (("--region", "us"), ("--regions", "us,eu")):
        late = deployed.call("promote", *words, "--yes")
        assert late.exit_code == 4
        assert "promoting, not at its gate (being promoted by eve@desk)" in late.stderr


@pytest.mark.parametrize(("fault", "code"), [("differ", 1), ("inconclusive", 3)])
def test_yes_never_opens_a_gate_whose_check_did_not_pass(deployed: World, fault: str, code: int) -> None:
    setattr(deployed.scripts["us"], fault, ("requests",))
    assert deployed.call("apply", "--yes", "--regions", "us").exit_code in (1, 3)
    assert deployed.call("promote", "--region", "us", "--yes").exit_code == code
    assert deployed.regions["us"].disk.live == "r1"


def test_rollback_goes_back_and_again_is_a_conflict_free_return(deployed: World) -> None:
    deployed.call("apply", "--yes", "--regions", "us")
    assert deployed.call("rollback", "--region", "us").exit_code == 3
    assert deployed.call("rollback", "--region", "us", "--yes").exit_code == 0
    assert deployed.regions["us"].disk.live == "r1"
    again = deployed.call("rollback", "--region", "us", "--yes")
    assert (again.exit_code, deployed.regions["us"].disk.live) == (4, "r1"), (
        "of two who roll back, the second undoes nothing"
    )
    assert "r1 is live already (rolled back by " in again.stderr
    unasked = deployed.call("rollback", "--region", "us")
    assert (unasked.exit_code, "--to r2 --yes" in unasked.stderr) == (3, True)
    forward = deployed.call("rollback", "--region", "us", "--to", "r2", "--yes")
    assert (forward.exit_code, forward.stdout) == (0, "us: r2 is live (was r1)\n")
    assert deployed.call("rollback", "--regions", "us,eu", "--to", "r1", "--yes").exit_code == 64


def test_what_takes_a_decision_names_its_region(deployed: World) -> None:
    for verb in ("promote", "rollback", "cancel", "discard", "cleanup"):
        result = deployed.call(verb, "--yes")
        assert result.exit_code == 64
        assert "say which region: us, eu" in result.stderr


def test_steering_without_a_region_touches_only_where_it_fits(deployed: World) -> None:
    assert deployed.call("resume").exit_code == 4
    deployed.call("apply")
    assert (
        deployed.call("pause").stdout == "us: paused (paused by " + deployed.regions["us"].disk.status.why[10:] + ")\n"
    )
    assert deployed.call("resume").stdout == "us: awaiting-confirmation\n"
    assert deployed.call("cancel", "--region", "us").stdout.startswith("us: cancelled")
    assert deployed.call("status", "--region", "us").exit_code == 0


def test_a_failed_region_exits_1_and_retry_goes_on(deployed: World) -> None:
    deployed.scripts["us"].failures["backfill/requests/parse"] = 1
    result = deployed.call("apply", "--yes")
    assert result.exit_code == 1
    assert "its Spark driver was lost" in result.stderr
    assert deployed.regions["eu"].disk.live == "r1"
    table = deployed.call("status").stdout
    assert "failed" in table
    assert deployed.call("apply", "--yes").exit_code == 1, "a failure is a person's to retry"
    assert deployed.call("watch").exit_code == 1


def test_status_tells_each_region_and_exits_5_for_one_out_of_reach(deployed: World) -> None:
    deployed.regions["eu"].drop_link()
    result = deployed.call("status", "--output", "json")
    assert result.exit_code == 5
    output = {entry["region"]: entry for entry in json.loads(result.stdout)["regions"]}
    assert output["us"]["live"] == "r1"
    assert output["eu"]["state"] == "unreachable"


def test_watch_returns_where_nothing_moves(deployed: World) -> None:
    assert deployed.call("watch").exit_code == 0
    deployed.call("apply")
    assert deployed.call("watch", "--region", "us").exit_code == 3
    assert deployed.call("watch", "--region", "us", "--timeout", "0.5").exit_code == 3


def test_cleanup_lists_before_it_drops_and_keeps_the_way_back(deployed: World) -> None:
    deployed.call("apply", "--yes", "--regions", "us")
    assert deployed.call("cleanup", "--region", "us", "--previous").exit_code == 3
    listed = deployed.call("cleanup", "--region", "us", "--previous", "--dry-run").stdout
    assert listed.startswith("us: would drop requests/")
    dropped = deployed.call("cleanup", "--region", "us", "--previous", "--yes").stdout
    assert dropped == listed.replace("would drop", "dropped")
    assert deployed.call("rollback", "--region", "us", "--yes").exit_code == 4


def test_a_cleanup_in_two_stages_has_a_due_date_and_can_be_taken_back_until_then(deployed: World) -> None:
    deployed.call("apply", "--yes", "--regions", "us")
    held = deployed.call("cleanup", "--region", "us", "--previous", "--hold", "12h")
    assert (held.exit_code, held.stdout.splitlines()[0].startswith("us: drops in 12 h requests/")) == (0, True)
    assert "r1 is on hold, dropped" in deployed.call("status", "--region", "us").output
    (region,) = json.loads(deployed.call("status", "--region", "us", "--output", "json").stdout)["regions"]
    (on_hold,) = region["on_hold"]
    assert (on_hold["release"], on_hold["due"] - on_hold["at"]) == ("r1", 12 * 3600)
    assert deployed.call("cleanup", "--region", "us").stdout == "us: nothing to drop\n"
    assert deployed.call("rollback", "--region", "us", "--yes").exit_code == 4
    restored = deployed.call("cleanup", "--region", "us", "--restore")
    assert restored.stdout == "us: r1 is the previous release again, and catches up\n"
    assert deployed.call("rollback", "--region", "us", "--yes").exit_code == 0
    assert deployed.call("cleanup", "--region", "us", "--restore").exit_code == 4


@pytest.mark.parametrize("words", [("--hold", "1h"), ("--restore", "--previous"), ("--previous", "--hold", "40d")])
def test_a_hold_that_cannot_be_is_a_usage_error(deployed: World, words: tuple[str, ...]) -> None:
    assert deployed.call("cleanup", "--region", "us", *words).exit_code == 64


def test_a_hostile_name_in_the_files_is_shown_and_not_obeyed(world: World) -> None:
    world.write({"regions/us.yaml": 'name: "us\\e]52;c;eHh4\\a"\nwarehouse: w/us\n'})
    result = world.call("plan")
    assert result.exit_code == 65
    assert "\x1b" not in result.output


CHANGES = ("apply", "promote", "rollback", "pause", "resume", "retry", "cancel", "discard", "cleanup", "copy", "sink",
           "ingest", "follow", "demo", "maintain", "tune", "note", "approve",
           "accept-until", "preview")  # fmt: skip
LOOKS = (
    "init",
    "adapt",
    "setup",
    "plan",
    "check",
    "test",
    "compare",
    "snapshot",
    "profile",
    "status",
    "handover",
    "playback",
    "watch",
    "query",
    "endpoint",
    "doctor",
    "info",
    "completion",
    "attach",
    "history",
    "show",
    "diff",
    "verify",
)
GROUPS = ("schema", "agent", "lock")  # each of their commands says for itself


def test_readonly_refuses_every_command_that_changes_a_region(deployed: World) -> None:
    before = [region.survey() for region in deployed.regions.values()]
    for name in CHANGES:
        more = ["x"] if name in ("copy", "sink", "ingest", "note") else []
        result = deployed.call("--readonly", name, *more, "--yes", "--regions", "us")
        assert (name, result.exit_code) == (name, 64)
        assert "--readonly forbids it" in result.stderr
    assert [region.survey() for region in deployed.regions.values()] == before


def test_every_command_is_known_as_one_that_changes_or_one_that_looks(deployed: World) -> None:
    assert {name for section in COMMANDS.values() for name in section} == {*CHANGES, *LOOKS, *GROUPS}
    assert deployed.call("--headless", "--readonly", "--yes").exit_code == 64
    assert deployed.call("apply", "--readonly", "--dry-run").exit_code == 0


NARROWER = {
    "plans/web/tables/requests.yaml": FILES["plans/web/tables/requests.yaml"].replace("ts: timestamp", "ts: date"),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT id, CAST(ts AS DATE) AS ts, to_date(ts) AS day FROM landing\n"
    ),
}


@pytest.mark.parametrize("words", [["apply", "--yes"], ["--headless", "--yes"]])
def test_a_loss_stops_a_run_until_it_is_accepted_by_its_name(deployed: World, words: list[str]) -> None:
    deployed.write(NARROWER)
    refused = deployed.call(*words)
    assert (refused.exit_code, "C103" in refused.stderr) == (65, True)
    assert [region.disk.live for region in deployed.regions.values()] == ["r1", "r1"]
    other = deployed.call(*words, "--allow-destructive", "C101:requests")
    assert (other.exit_code, "refused: C103:requests" in other.stderr) == (64, True)
    accepted = deployed.call(*words, "--allow-destructive", "C103:requests")
    assert accepted.exit_code == 0, accepted.output
    assert "accepted C103: requests.ts narrows from timestamp to date" in accepted.stdout
    for region in deployed.regions.values():
        assert region.disk.live == "r2"
        assert stored_events(region, Accepted)[-1].allowed == ("C103:requests",)


def test_a_saved_plan_keeps_what_was_accepted(deployed: World) -> None:
    deployed.write(NARROWER)
    path = deployed.root / "change.json"
    assert deployed.call("plan", "--out", str(path), "--allow-destructive", "C103:requests").exit_code == 0
    assert deployed.call("apply", str(path), "--yes").exit_code == 0
    assert {stored_events(region, Accepted)[-1].allowed for region in deployed.regions.values()} == {("C103:requests",)}


@pytest.mark.parametrize("name", ["C103", "requests", "C103:", "C103:a b", "*"])
def test_a_loss_is_accepted_by_code_and_table_or_not_at_all(deployed: World, name: str) -> None:
    assert deployed.call("plan", "--allow-destructive", name).exit_code == 64


RETYPED = {
    "plans/web/tables/requests.yaml": FILES["plans/web/tables/requests.yaml"].replace("id: string", "id: int"),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT CAST(id AS INT) AS id, ts, to_date(ts) AS day FROM landing\n"
    ),
}


def answered(deployed: World, values: int) -> None:
    """Every region answers the one question of the change."""
    plans = json.loads(deployed.call("plan", "--output", "json").stdout)["plans"]
    (probe,) = probes(decode(Plan, {k: v for k, v in plans[0].items() if k != "digest"}))
    for region in deployed.regions.values():
        region.answers[probe.count] = QueryResult((("values", "bigint"),), ((values,),), "")
        region.answers[probe.keys] = QueryResult((("ts", "timestamp"),), (("2026-11-07",),) * min(values, 10), "")


def test_probe_asks_the_data_of_every_region(deployed: World) -> None:
    deployed.write(RETYPED)
    assert "a value that does not convert stops its batch" in deployed.call("plan").stdout
    answered(deployed, 0)
    assert "every value of its history converts to int" in deployed.call("plan", "--probe").stdout
    answered(deployed, 3)
    result = deployed.call("plan", "--probe")
    assert (result.exit_code, "3 values of its history do not convert to int, at 2026-11-07" in result.stdout) == (
        65,
        True,
    )


@pytest.mark.parametrize(
    ("edit", "report"),
    [
        (
            lambda eu, ap: ap.write_text(eu.read_text().replace("eu", "ap")),
            "ap was added to the inventory during this run and",
        ),
        (lambda eu, _: eu.unlink(), "eu was removed from the inventory during this run, which includes it"),
        (lambda eu, _: eu.write_text("{"), "the inventory cannot be read any more"),
    ],
)
def test_an_inventory_that_changes_during_a_run_is_told_and_changes_nothing_of_it(
    deployed: World, monkeypatch: pytest.MonkeyPatch, edit: Callable[[Path, Path], object], report: str
) -> None:
    folder, run = deployed.root / "regions", Fleet.run

    async def meanwhile(self: Fleet, names: Sequence[str], **how: Any) -> Any:
        edit(folder / "eu.yaml", folder / "ap.yaml")
        return await run(self, names, **how)

    monkeypatch.setattr(Fleet, "run", meanwhile)
    result = deployed.call("apply", "--yes")
    assert result.exit_code == 0, result.output
    assert [region.disk.live for region in deployed.regions.values()] == ["r2", "r2"]
    assert result.stderr.count(f"warning: {report}") == 1


def test_a_wave_that_has_not_begun_is_named_with_the_command_that_goes_on(deployed: World) -> None:
    """A command is over when it has promoted: nobody is left who could begin the next wave."""
    done = deployed.call("apply")
    assert done.exit_code == 3, done.output
    report = deployed.call("status").output
    assert "eu: wave 2 has not begun: it waits for us" in report
    promoted = deployed.call("promote", "--region", "us", "--yes")
    assert promoted.exit_code == 0, promoted.output
    assert promoted.stderr.splitlines()[-1] == "next: console apply --regions eu"
    for command in ("status", "plan"):
        report = deployed.call(command).output
        assert "eu: wave 2 has not begun, and can start: us is live; console apply --regions eu" in report
    (eu,) = [
        r for r in json.loads(deployed.call("status", "--output", "json").stdout)["regions"] if r["region"] == "eu"
    ]
    assert eu["waits_for_wave"] == {"wave": 2, "after": []}
    planned = json.loads(deployed.call("plan", "--output", "json").stdout)
    assert planned["waits_for_wave"] == [{"region": "eu", "wave": 2, "after": []}]
    assert deployed.call("apply", "--regions", "eu").exit_code == 3
    assert "has not begun" not in deployed.call("status").output
