"""`--history TABLE=…` on the command line, and `history:` in files and overrides."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from console.cli.status_text import gate_text, status_text
from console.model.plan import Plan
from console.model.status import State, Status
from console.runner.view import RegionView
from console.tui.panes.safety import safety_lines
from tests.cli.conftest import CHANGE, FILES, World
from tests.planning.world import REGION, REQUESTS, pipeline, planned, with_column, with_table

TABLE = "plans/web/tables/requests.yaml"


def chosen(output: str) -> dict[str, str]:
    plans = json.loads(output)["plans"]
    return {
        plan["region"]: next(n.get("history", "") for n in plan["nodes"] if n["name"] == "requests") for plan in plans
    }


@pytest.mark.slow
def test_a_choice_is_part_of_the_plan_and_says_what_older_rows_will_show(deployed: World) -> None:
    shown = deployed.call("plan", "--history", "requests=carry")
    assert "by the operator's choice: older rows: agent is NULL" in shown.output
    with_it = deployed.call("plan", "--history", "requests=carry", "--output", "json").stdout
    without = deployed.call("plan", "--output", "json").stdout
    assert (chosen(with_it), chosen(without)) == ({"us": "carry", "eu": "carry"}, {"us": "", "eu": ""})
    digests = [{plan["digest"] for plan in json.loads(text)["plans"]} for text in (with_it, without)]
    assert not digests[0] & digests[1]


@pytest.mark.slow
def test_a_saved_plan_keeps_the_choice_with_which_it_was_made(deployed: World, tmp_path: Path) -> None:
    file = str(tmp_path / "change.json")
    assert deployed.call("plan", "--history", "requests=carry", "--out", file).exit_code == 0
    checked = deployed.call("apply", file, "--dry-run", "--output", "json")
    assert (checked.exit_code, chosen(checked.stdout)) == (0, {"us": "carry", "eu": "carry"})
    assert deployed.call("apply", file, "--yes", "--quiet").exit_code == 0
    plan = deployed.call("plan", "--output", "json")
    assert json.loads(plan.stdout)["summary"]["forward"] == 0


@pytest.mark.slow
def test_a_file_and_a_regions_overrides_choose_and_the_command_line_goes_before_both(deployed: World) -> None:
    deployed.write({TABLE: CHANGE[TABLE] + "history: carry\n"})
    eu = FILES["regions/eu.yaml"] + "overrides: {web: {tables: {requests: {history: all}}}}\n"
    deployed.write({"regions/eu.yaml": eu})
    assert chosen(deployed.call("plan", "--output", "json").stdout) == {"us": "carry", "eu": ""}
    every = deployed.call("plan", "--history", "requests=all", "--output", "json")
    assert chosen(every.stdout) == {"us": "", "eu": ""}


@pytest.mark.slow
def test_status_says_at_the_gate_what_older_rows_will_show(deployed: World) -> None:
    assert deployed.call("apply", "--history", "requests=carry", "--region", "us", "--quiet").exit_code in (0, 3)
    assert "requests, history: carry: older rows: agent is NULL" in deployed.call("status", "--region", "us").output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("requests", "expected TABLE="),
        ("requests=since yesterday", "not a day"),
        ("request=carry", "not a table"),
    ],
)
def test_what_is_no_choice_is_refused_by_name(deployed: World, word: str, says: str) -> None:
    done = deployed.call("plan", "--history", word)
    assert (done.exit_code, says in done.stderr) == (64, True), done.stderr
    twice = deployed.call("plan", "--history", "requests=carry", "--history", "requests=all")
    assert "twice" in twice.stderr


@pytest.mark.slow
def test_from_now_in_a_file_moves_no_row(deployed: World) -> None:
    deployed.write({TABLE: CHANGE[TABLE] + "history: from now\n"})
    plans = json.loads(deployed.call("plan", "--output", "json").stdout)["plans"]
    about = [node for plan in plans for node in plan["nodes"] if node["name"] == "requests"]
    assert [(node["history"], node["price"]["rows"]) for node in about] == [("from now", 0)] * 2


AGENT = "get_json_object(payload, '$.agent')"


def view_of(plan: Plan, state: State = "awaiting-confirmation") -> RegionView:
    return RegionView(region=REGION, status=Status(state=state), accepted=plan)


def at_gate() -> RegionView:
    table = replace(REQUESTS, retention_days=30, history="from now")
    return view_of(planned(with_column(with_table(pipeline(), table), "agent", "string", AGENT)))


def read_until_expiry() -> RegionView:
    """By the operator's `read_time_days`, a column is computed at read until older rows are gone, and none of them moves."""
    return view_of(
        planned(
            with_column(
                with_table(pipeline(), replace(REQUESTS, retention_days=7, read_time_days=7)),
                "zone",
                "string",
                "upper(region)",
            )
        )
    )


def shown_before_the_promotion(view: RegionView) -> dict[str, str]:
    screen = [line.plain for line in safety_lines(view, (), 300, 0.0)]
    return {
        "gate": gate_text(view, 0.0),
        "status": status_text([view], {}, 0.0),
        "screen": "\n".join(screen),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "says"),
    [
        (at_gate, "requests, history: from now: older rows: agent is NULL; the last of them expires on 2026-12-14"),
        (read_until_expiry, "requests: older rows: zone is computed at read; the last of them expires on 2026-11-21"),
    ],
    ids=["by the word", "by read_time_days"],
)
def test_gate_and_status_name_the_last_day_of_rows_that_expire_instead_of_being_migrated(
    view: Callable[[], RegionView], says: str
) -> None:
    assert {where: says in text for where, text in shown_before_the_promotion(view()).items()} == {
        "gate": True, "status": True, "screen": True,
    }  # fmt: skip


@pytest.mark.slow
def test_the_gate_lists_every_choice_with_what_it_would_have_moved() -> None:
    lines = gate_text(at_gate(), 0.0).splitlines()
    assert [line.strip() for line in lines if " from now (chosen): 0 rows" in line]
    assert [line.strip() for line in lines if "history of requests · all: 14,000 rows" in line]
    drawn = "\n".join(line.plain for line in safety_lines(at_gate(), (), 160, 0.0))
    assert "requests · taken from now: no row moves; older rows: agent is NULL" in drawn
    assert "requests · carry: 14 days" in drawn


@pytest.mark.parametrize(("day", "named"), [("2026-12-14", True), ("2026-12-15", False)])
def test_status_names_the_last_day_of_older_rows_after_the_promotion_until_that_day(day: str, named: bool) -> None:
    live = replace(at_gate(), status=Status(state="live"))
    now = datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
    assert ("agent is NULL; the last of them expires on 2026-12-14" in status_text([live], {}, now)) is named
