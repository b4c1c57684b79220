"""The frame: help, flags before and after the command, exit codes, what is imported."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from console.cli.output import region_lead
from console.cli.root import COMMANDS, cli
from console.cli.wiring import CliContext, Wiring
from console.errors import Unreachable, received
from tests.cli.conftest import World

HEAVY = ("textual", "pyspark", "sqlglot", "pydantic", "asyncio", "deltalake", "networkx", "asyncssh", "yaml", "rich")
NAMES = [(name, each.target, each.help) for section in COMMANDS.values() for name, each in section.items()]


def test_a_region_is_put_before_an_error_that_does_not_name_it() -> None:
    assert region_lead("eu", Unreachable("eu: no agent runs", region="eu")) == ""
    assert region_lead("eu", Unreachable("no landing table below /w/eu")) == "eu: "
    assert region_lead("eu", Unreachable("us: no agent runs", region="us")) == "eu: "


@pytest.mark.parametrize(("message", "region"), [("eu: no agent runs", "eu"), ("eu-west: none", ""), ("none", "")])
def test_whether_a_received_message_names_its_region_is_known_from_its_front(message: str, region: str) -> None:
    assert received("Unreachable", message, hint="", code="", region="eu").region == region


def call(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, list(words), obj=CliContext(Wiring(lambda _: {})), catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def fresh(code: str) -> str:
    """Run in a process of its own: what this one has imported must not count."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30).stdout


# a command's module imports what the command needs, and asyncio with the runner; its libraries wait for their use
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "needed"), [(["--help"], []), (["--version"], []), (["plan", "--help"], ["asyncio"])]
)
def test_help_imports_nothing_heavy(words: list[str], needed: list[str]) -> None:
    loaded = fresh(
        "import sys\nfrom console.main import main\n"
        f"sys.argv[1:] = {words}\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0, end.code\n"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    )
    assert loaded.endswith(f"loaded: {needed}\n")


def test_names_are_completed_from_the_project_that_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("regions/eu.yaml", "regions/us.yaml", "regions/_base.yaml", "plans/web/pipeline.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()

    def completed(*words: str) -> list[str]:
        result = ShellComplete(cli, {"obj": CliContext(Wiring(lambda _: {}))}, "console", "_CONSOLE_COMPLETE")
        return [item.value for item in result.get_completions(list(words[:-1]), words[-1])]

    for lead in (["--project", str(tmp_path), "plan"], ["plan", "--project", str(tmp_path)]):
        assert completed(*lead, "--regions", "") == ["eu", "us", "all"]
        assert completed(*lead, "--regions", "eu,u") == ["eu,us"]
        assert completed(*lead, "--pipeline", "") == ["web"]
    monkeypatch.chdir(tmp_path / "plans" / "web")
    assert completed("plan", "--region", "e") == ["eu"]
    monkeypatch.chdir(tmp_path.parent)
    assert completed("plan", "--pipeline", "") == []


@pytest.mark.parametrize(("name", "target", "text"), NAMES)
def test_the_listed_help_is_the_commands_own(name: str, target: str, text: str) -> None:
    module, function = target.split(":")
    command = getattr(import_module(f"console.cli.commands.{module}"), function)
    assert command.name == name
    assert (command.help or "").split("\n\n")[0].replace("\n", " ") == text


def test_every_command_is_in_the_help() -> None:
    code, out, _ = call("--help")
    assert code == 0
    assert all(f"\n  {name} " in out for name, *_ in NAMES)


def test_without_a_terminal_it_prints_help_and_exits_64() -> None:
    code, out, err = call()
    assert code == 64
    assert "Usage: console" in out
    assert err.startswith("error: no terminal")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paln"], "did you mean plan?"),
        (["plan", "--wat"], "No such option"),
        (["--wat"], "No such option"),
        (["endpoint"], "Missing argument"),
        (["plan", "--output", "yaml"], "'yaml' is not one of"),
        (["--headless", "plan"], "--headless cannot be combined"),
        (["query", "--limit", "0", "SELECT 1"], "0 is not in the range"),
        (["apply", "/no/such/plan.json"], "no such file"),
    ],
)
def test_a_usage_error_exits_64_in_two_lines(words: list[str], message: str) -> None:
    code, out, err = call(*words)
    assert (code, out) == (64, "")
    assert message in err
    assert [line.split(":")[0] for line in err.splitlines()] == ["error", "hint"]


@pytest.mark.parametrize("words", [["--output", "json", "plan", "--wat"], ["plan", "--wat", "--output=json"]])
def test_with_json_an_error_is_an_object_on_stdout_as_well(words: list[str]) -> None:
    code, out, err = call(*words)
    assert code == 64
    assert json.loads(out)["error"]["exit_code"] == 64
    assert json.loads(out)["format_version"] == 1
    assert err.startswith("error: ")


def test_flags_hold_before_and_after_the_command_and_the_later_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_OUTPUT", "jsonl")
    code, out, _ = call("--output", "text", "--pipeline", "a", "info", "--output", "json", "--project", "/tmp")
    results = {entry["name"]: (entry["value"], entry["source"]) for entry in json.loads(out)["settings"]}
    assert code == 0
    assert results["output"] == ("json", "flag")
    assert results["pipeline"] == ("a", "flag")
    assert results["project"] == ("/tmp", "flag")
    assert json.loads(call("info")[1])["settings"][3] == {
        "name": "output",
        "value": "jsonl",
        "source": "CONSOLE_OUTPUT",
    }


def test_the_environment_never_beats_a_flag_given_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_REGIONS", "eu")
    results = {
        e["name"]: e["value"] for e in json.loads(call("--regions", "us", "info", "--output", "json")[1])["settings"]
    }
    assert results["regions"] == "us"


def test_a_project_that_is_none_is_said_so() -> None:
    code, _, err = call("plan", "--project", "/")
    assert code in (64, 65)
    assert err.startswith("error: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_shells_script(shell: str) -> None:
    code, out, _ = call("completion", shell)
    assert code == 0
    assert "_CONSOLE_COMPLETE" in out


@pytest.mark.slow
def test_a_plan_of_real_regions_loads_neither_spark_nor_screen_and_starts_no_agent(world: World) -> None:
    for name in ("us", "eu"):
        (world.root / "w" / name).mkdir(parents=True)
    loaded = fresh(
        "import sys\nfrom console.main import main\n"
        f"sys.argv[1:] = ['plan', '--project', {str(world.root)!r}]\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0, end.code\n"
        "print('loaded:', [name for name in ('textual', 'pyspark', 'deltalake', 'asyncssh') if name in sys.modules])"
    )
    lines = loaded.splitlines()
    assert lines[-2:] == ["Plan: 2 regions, 4 create", "loaded: []"]
    assert not list((world.root / "w").glob("*/*"))
