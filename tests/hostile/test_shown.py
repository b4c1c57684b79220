"""S4, S5, S13: nothing from outside steers a terminal or a CI log, and no secret reaches either, nor a file."""

import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console import text as text_module
from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring
from console.drivers.fake import FakeDriver, FakeRegion
from console.drivers.protocol import Driver, Who
from console.errors import ConsoleError, DataError, Problem, Problems, Protocol, RegionError, Unreachable
from console.model.fleet import FleetWaves
from console.model.plan import Plan
from console.model.region import Region
from console.runner.exit_codes import exit_code
from console.runner.view import Outcome
from console.text import hide, redacted, safe_text
from tests.cli.conftest import World, _live
from tests.screens.hostile import ALL

pytestmark = pytest.mark.slow

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def steering(text: str) -> set[str]:
    return {char for char in text if char != "\n" and unicodedata.category(char) in STEERING}


class Failing(FakeDriver):
    """A region that fails with whatever it is given to say."""

    error: ConsoleError = RegionError("")

    async def survey(self, pipeline: str, landing: Sequence[str]) -> Any:
        raise self.error

    async def state(self, pipeline: str) -> Any:
        raise self.error


class Refusing(Failing):
    """A region that can be looked at, and then fails."""

    survey = FakeDriver.survey
    state = FakeDriver.state

    async def accept(self, plan: Plan, who: Who, *, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        raise self.error


def call(world: World, kind: type[Failing], error: ConsoleError, *words: str) -> Result:
    made = type("Made", (kind,), {"error": error})

    def drivers(regions: Sequence[Region]) -> Mapping[str, Driver]:
        return {region.name: made(FakeRegion(region, _live(region))) for region in regions}

    line = [*words, "--project", str(world.root)]
    return CliRunner().invoke(cli, line, obj=CliContext(Wiring(drivers)), catch_exceptions=False)


@pytest.mark.parametrize(
    "error",
    [
        RegionError(ALL, hint=ALL, code="E"),
        Unreachable(f"eu: {ALL}", hint=ALL),
        DataError(f"{ALL}\n{ALL}", hint=ALL),
        Problems.of([Problem(code="C1", message=ALL, where=ALL, hint=ALL, node=ALL)] * 3),
    ],
)
@pytest.mark.parametrize("words", [["plan"], ["status"], ["apply", "--yes"], ["promote", "--region", "eu"]])
def test_s04_s05_what_a_region_says_steers_no_terminal_and_no_log(
    world: World, error: ConsoleError, words: list[str]
) -> None:
    shown = call(world, Failing, error, *words)
    assert shown.exit_code not in (0, 2)
    assert steering(shown.stdout + shown.stderr) == set()
    assert "[red]x[/]" in shown.stdout + shown.stderr, "markup is text"
    data = call(world, Failing, error, *words, "--output", "json")
    assert steering(data.stdout) == set(), "JSON escapes it"
    try:
        assert json.loads(data.stdout)["format_version"] == 1
    except ValueError:
        assert all(json.loads(line)["format_version"] == 1 for line in data.stdout.splitlines()), "a stream"


@pytest.mark.parametrize("words", [["plan"], ["status"], ["apply", "--yes"], ["promote", "--region", "eu"]])
def test_s10_an_answer_that_is_none_ends_a_command_with_65_and_its_regions_name(world: World, words: list[str]) -> None:
    shown = call(world, Failing, Protocol("eu: the agent does not speak the protocol: x", code="E_PROTOCOL"), *words)
    assert shown.exit_code == 65
    assert "eu: the agent does not speak the protocol" in shown.stdout + shown.stderr
    assert exit_code([Outcome("eu", "none", Protocol("x")), Outcome("us", "failed", RegionError("x"))]) == 65


COMMANDS = (
    "::set-output name=x::y",
    "  ::error file=a::b",
    "##[error]x",
    "\t##vso[task.setvariable variable=a]b",
    "x\n::error::y",
)


@pytest.mark.parametrize("message", COMMANDS)
@pytest.mark.parametrize("words", [["plan"], ["status"], ["apply", "--yes"], ["apply", "--yes", "--output", "jsonl"]])
def test_s06_a_line_of_a_ci_log_is_no_command_to_its_runner(world: World, words: list[str], message: str) -> None:
    for kind in (Failing, Refusing):
        error = (
            Problems.of([Problem(code="C1", message=message, where=message, hint=message, node=message)])
            if kind is Failing
            else RegionError(message, hint=message)
        )
        result = call(world, kind, error, *words)
        lines = (result.stdout + result.stderr).splitlines()
        assert not [line for line in lines if line.lstrip().startswith(("::", "##"))], lines


CANARY = "canary7f3a91d2"
SHAPES = (
    f'{{"token": "{CANARY}", "a": 1}}',
    f'{{"api_key":"{CANARY}"}}',
    f'{{"client_secret" : "a b {CANARY}"}}',
    f'body "{{\\"accessToken\\": \\"a b {CANARY}\\"}}"',
    f"{{'session-token': '{CANARY}'}}",
    f'password="two words, {CANARY}" host=x',
    f'"password": "a \\"quoted\\" {CANARY}", "a": 1',
    f"jdbc:x://h?user=ops;password='two words {CANARY}';ssl=true",
    f'secret="cut off in the middle {CANARY}',
    f"x-api-key: {CANARY}",
    f"X-Auth-Token: {CANARY}",
    f"x-amz-security-token:{CANARY}",
    f"PRIVATE-TOKEN: {CANARY}",
    f"authorization: token {CANARY}",
    f"aws_secret_access_key = {CANARY}",
    f"aws_session_token={CANARY}",
    f"sent Bearer {CANARY} to x",
    f"https://acme.blob.core.windows.net/c/b?sv=2022&sig={CANARY}%3D",
    f"https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={CANARY}",
    f"https://{CANARY}@git.example.net/acme/pipelines.git",
    f"https://{CANARY}:x-oauth-basic@git.example.net/",
    f"ghp_{CANARY}",
    f"github_pat_11A_{CANARY}",
)
LEAKS = {
    f"s3a: access denied, secret key {CANARY} was refused": True,  # known by its setting's name
    f"jdbc:postgresql://ops:{CANARY}@db.example.net:5432/app": False,
    f"connection failed: user=ops password={CANARY} host=x": False,
    f"HTTP 401, Authorization: Bearer {CANARY}": False,
    f"url https://x.example.net/?sig=1&token={CANARY}&b=2": False,
    f"fs.azure.account.key={CANARY}": False,
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n-----END OPENSSH PRIVATE KEY-----": False,
    "\n".join(SHAPES): False,
}


@pytest.fixture(autouse=True)
def unhidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "_hidden", set())


def traces(folder: Path, outside: Path) -> list[str]:
    """Files with the canary in them, but for those in which the operator wrote it."""
    return [
        str(path) for path in folder.rglob("*")
        if path.is_file() and not path.is_relative_to(outside) and CANARY.encode() in path.read_bytes()
    ]  # fmt: skip


@pytest.mark.parametrize("message", LEAKS)
def test_s13_a_secret_in_an_error_reaches_no_output_and_no_file(world: World, tmp_path: Path, message: str) -> None:
    conf = f"spark: {{conf: {{spark.hadoop.fs.s3a.secret.key: {CANARY}}}}}\n" if LEAKS[message] else ""
    text = (world.root / "regions" / "eu.yaml").read_text()
    world.write({"regions/eu.yaml": text + conf})
    error = RegionError(message, hint=message)
    for kind, words in (
        (Failing, ["plan", "-vv"]), (Failing, ["status"]), (Refusing, ["plan", "--out", str(tmp_path / "saved.json")]),
        (Refusing, ["apply", "--yes"]), (Refusing, ["apply", "--yes", "--output", "jsonl"]), (Failing, ["plan", "--output", "json"]),
    ):  # fmt: skip
        result = call(world, kind, error, *words)
        assert CANARY not in result.output + result.stdout + result.stderr, words
    assert (tmp_path / "home" / "state" / "journal.db").exists()
    assert traces(tmp_path, world.root / "regions") == []


def test_s13_a_traceback_shows_no_secret(world: World, tmp_path: Path) -> None:
    """A bug in the middle of a command, with a secret in its message and in its locals."""
    text = (world.root / "regions" / "eu.yaml").read_text()
    world.write({"regions/eu.yaml": f"{text}spark: {{conf: {{spark.my.password: {CANARY}}}}}\n"})
    script = (
        "import sys\nfrom console import main as program\n"
        "def broken(regions):\n"
        "    secret = dict(regions[-1].spark.conf)\n"
        "    raise RuntimeError(f'cannot connect with {secret} to jdbc:x://u:other-secret@h')\n"
        "program.real_drivers = broken\n"
        f"sys.argv[1:] = ['plan', '-vv', '--project', {str(world.root)!r}]\nprogram.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "CONSOLE_HOME": str(tmp_path / "home")},
    )  # fmt: skip
    assert "Traceback" in done.stderr
    assert "RuntimeError: cannot connect with" in done.stderr
    assert CANARY not in done.stderr + done.stdout
    assert "other-secret" not in done.stderr
    assert traces(tmp_path, world.root / "regions") == []


BUGS = {
    "in a thread": "import threading\nthread = threading.Thread(target=bug)\nthread.start()\nthread.join()\n",
    "in a task that nobody awaits": "import asyncio, gc\nasync def task():\n    bug()\n"
    "async def run():\n    asyncio.create_task(task())\n    await asyncio.sleep(0.1)\n    gc.collect()\nasyncio.run(run())\n",
    "in a finaliser": "class Kept:\n    def __del__(self):\n        bug()\nKept()\n",
    "in the program": "bug()\n",
}


@pytest.mark.parametrize("where", BUGS)
def test_s13_a_bug_shows_no_secret_wherever_it_happens(where: str) -> None:
    script = (
        "from console.text import guard_tracebacks, hide\n"
        f"guard_tracebacks()\nhide([('my.secret', {CANARY!r})])\n"
        f"def bug():\n    raise RuntimeError('cannot use ' + {CANARY!r} + ' at jdbc:x://u:other-secret@h')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + BUGS[where]], capture_output=True, text=True, check=False, timeout=60
    )
    assert "RuntimeError: cannot use *** at jdbc:x://u:***@h" in done.stderr
    assert CANARY not in done.stderr + done.stdout


def test_s13_the_inventorys_own_errors_quote_no_secret(world: World) -> None:
    for text in (f"secrets: {{aws: {CANARY}}}", f"transport: {{ssh: {{host: x, key: {CANARY}}}}}",
                 f"spark: {{conf: {{a: [{CANARY}]}}}}"):  # fmt: skip
        world.write({"regions/eu.yaml": f"warehouse: w/eu\n{text}\n"})
        result = world.call("plan")
        assert result.exit_code == 65
        assert CANARY not in result.output, text


@pytest.mark.parametrize("message", SHAPES)
def test_s13_what_looks_like_a_secret_is_masked_and_what_stands_around_it_is_not(message: str) -> None:
    assert CANARY not in redacted(f"before\n{message}\nafter")
    assert redacted(f"before\n{message}\nafter").startswith("before\n")
    assert redacted(f"before\n{message}\nafter").endswith("\nafter")
    assert redacted(redacted(message)) == redacted(message)
    assert CANARY not in safe_text(message)


def test_s13_what_is_masked_leaves_the_rest_of_its_line() -> None:
    for item, shown in {
        '{"token": "abc def", "a": 1}': '{"token": ***, "a": 1}',
        "password='two words' host=x": "password=*** host=x",
        "GET https://h/c?sig=ab%2B&b=2": "GET https://h/c?sig=***&b=2",
        "https://abc@h/x": "https://***@h/x",
        "x-api-key: abc\nhost: x": "x-api-key: ***\nhost: x",
        "sent Bearer ab12cd34ef to x": "sent Bearer *** to x",
        f"with dapi{'0a' * 16} at h": "with *** at h",
    }.items():
        assert redacted(item) == shown


@pytest.mark.parametrize(
    "unit",
    ["token", "secret-", "ey-", "eyaaaaaaaaaaa.", "a://b:", "https://", "bearer a", "pwd='", '"token": "', "token=\\",
     'password="\\\\', "authorization: ", "secret_access_key   ", "x-amz-", "?sig=", "-----BEGIN A PRIVATE KEY-----", "PRIVATE KEY"],
)  # fmt: skip
def test_s13_a_line_costs_no_more_than_its_length(unit: str) -> None:
    """Four times the length in four times the time: in the square of it, a megabyte would hold a terminal for hours."""

    def seconds(length: int) -> float:
        line, spent = (unit * (length // len(unit) + 1))[:length], []
        for _ in range(3):
            began = time.process_time()
            redacted(line)
            spent.append(time.process_time() - began)
        return min(spent)

    assert seconds(1 << 16) < 10 * max(seconds(1 << 14), 0.001)


def test_s13_what_is_no_secret_stays_readable() -> None:
    hide([("spark.secret.flag", "true"), ("spark.app.name", "requests"), ("spark.password", "long enough")])
    for text in (
        "true",
        "requests",
        "column token: string",
        "SELECT token FROM t WHERE secret IS NULL",
        "a://b:c",
        "x@y",
        "the token is refused; a bearer of good news, a Bearer token, the bearer authentication",
        "columns sig, signature, api_key, token: string; sig=3 of 7",
        "api_key: string",
        "SELECT sig, `token` FROM t WHERE token = 'x' AND sig='y' AND secret = other.secret",
        "/lake/eu/requests/v3/sig=3/day=2024-01-01/part-0.parquet",
        "limits.rows=5000000 key=value keys=3 primary-key: id sort-key: day",
        f"sha256:{'0a' * 32} digest={'0f' * 32} agent-{'7c' * 20}.pyz",
        "abfss://container@acme.dfs.core.windows.net/lake",
        "s3a://bucket/key=1/x",
        "https://example.net/people?mail=ada@example.net",
        "ssh: ops@gate.example.net:22",
        'ghp_1 and dapifoo; they said "token": it is none',
        "$.payload.token of landing",
    ):
        assert redacted(text) == text
        assert safe_text(text) == text
    assert safe_text("it is long enough") == "it is ***"
