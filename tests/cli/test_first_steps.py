"""First steps of a new operator: a plan while a rollout waits, a first release, a warehouse that does not exist."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CHANGE, FILES, World

pytestmark = pytest.mark.slow


def test_a_plan_names_the_rollout_that_stands_at_its_gate_and_the_commands_that_go_on(deployed: World) -> None:
    deployed.call("apply", "--regions", "us")
    output = deployed.call("plan").stdout.splitlines()
    assert output[0] == (
        "us: web-2 (r1 → r2) is at its gate with this change; console promote --region us makes it live, "
        "console cancel --region us drops it"
    )
    assert output[-1].startswith("Plan: 2 regions")
    (stands,) = json.loads(deployed.call("plan", "--output", "json").stdout)["rollouts"]
    assert stands == {"region": "us", "rollout": "web-2", "release": "r2", "was": "r1", "state": "awaiting-confirmation", "same": True}  # fmt: skip


def test_a_plan_says_where_what_stands_is_another_change(deployed: World) -> None:
    deployed.call("apply", "--regions", "us")
    table = CHANGE["plans/web/tables/requests.yaml"].replace("agent: string", "agent: string, size: bigint")
    sql = CHANGE["plans/web/materializations/parse.sql"].replace(" FROM", ", length(payload) AS size FROM")
    deployed.write({"plans/web/tables/requests.yaml": table, "plans/web/materializations/parse.sql": sql})
    assert "us: web-2 (r1 → r2) is at its gate with another change;" in deployed.call("plan").stdout


def test_a_plan_names_what_is_paused_and_says_nothing_where_nothing_stands(deployed: World) -> None:
    assert "web-" not in deployed.call("plan").stdout
    deployed.call("apply", "--regions", "us")
    assert deployed.call("pause", "--regions", "us").exit_code == 0
    assert "us: web-2 (r1 → r2) is paused with this change; console resume" in deployed.call("plan").stdout
    deployed.call("resume", "--regions", "us")
    deployed.call("promote", "--region", "us", "--yes")
    assert "web-2" not in deployed.call("plan").stdout


def test_a_first_release_was_nothing_before(world: World) -> None:
    world.call("apply", "--regions", "us")
    done = world.call("promote", "--region", "us", "--yes")
    assert done.stdout == "us: r1 is live (was nothing)\n"
    assert done.stderr == "us  nothing → r1\n"


@pytest.mark.parametrize("words", [["plan"], ["status"], ["query", "--region", "us", "SELECT 1"]])
def test_a_warehouse_that_is_not_there_is_a_mistake_in_the_files_and_not_safe_to_retry(
    words: list[str], tmp_path: Path
) -> None:
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "w" / "eu").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-m", "console.main", *words, "--project", str(root)],
        env={**os.environ, "CONSOLE_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 65, done.stderr
    error, hint = done.stderr.splitlines()[-2:]
    assert error == f"error: us: there is no warehouse at {root / 'w' / 'us'}"
    assert f"mkdir -p {root / 'w' / 'us'}" in hint
    (root / "w" / "us").mkdir()
    again = subprocess.run(
        [sys.executable, "-m", "console.main", "status", "--project", str(root)],
        env={**os.environ, "CONSOLE_HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
