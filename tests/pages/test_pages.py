"""Every command of the README and of docs/*.md runs as written, in its order; what does not is listed with the reason."""

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import pairwise, takewhile
from pathlib import Path

import click
import pytest

from console.cli.root import cli
from tests.pages import sittings
from tests.pages.blocks import PAGES, ROOT, Command, called, commands, course, mentioned
from tests.pages.terminal import ESCAPES, Seen, in_pipe, on_terminal
from tests.propagation.servers.postgres import Postgres
from tests.stores.test_page import steps

pytestmark = pytest.mark.slow

COLOURS = "xterm-256color"
# What starts Spark or changes a region runs once, on a terminal with colours; all else three times.
ONCE = (
    "demo", "apply", "promote", "endpoint", "rollback", "follow", "query", "verify", "schema",
)  # fmt: skip
NEVER = {
    "make demo": "a screen on a terminal, over three regions: tests/demo and tests/screens",
    "make test": "this is it",
    "make demo HEADLESS=1": "four minutes over three regions; its parts are tests/demo and tests/life",
    "console demo --chaos": "a screen on a terminal until somebody leaves it; tests/demo kills an agent and compares",
    "make demo LOG=access.log": "a screen on a terminal; tests/demo/test_traffic.py reads logs",
    "console adapt landing --as events": "a table that others write: tests/cli/test_adapt.py, and tests/life/test_aggregates.py on Spark",
    "console endpoint top_errors --region us --param since=2026-11-07 --record": "tests/cli/test_query_and_ingest.py",
    **dict.fromkeys(
        ("pip install 'pipeline-console[agent,s3]'", "pip install 'pipeline-console[agent,s3,connect]'"),
        "from the package registry; tests/installed installs the wheel",
    ),
    "console setup --with s3": "tests/setup, and the set-up of these tests",
    "console status --region us --output json": "tests/cli, and on the README's page by its table",
    **dict.fromkeys(
        (
            'console promote --region eu --accept "requests: sums" --reason "two late rows, read again"',
            "console approve --region eu --ticket OPS-7",
            "console promote --region eu --ticket OPS-7",
        ),
        "tests/cli/test_gate.py",
    ),
    **dict.fromkeys(
        ("console promote --regions @wave2", "console promote --regions eu,us"),
        "two ways to name the same regions: tests/cli/test_together.py, and tests/life/test_together.py on Spark",
    ),
    **dict.fromkeys(
        (
            "console preview --region us --name fix-cast --days 3 --live",
            'console query --region us --release fix-cast "SELECT day, count(*) AS n FROM requests GROUP BY day"',
            "console endpoint top_errors --region us --release fix-cast",
            "console copy daily_totals --region us --release fix-cast",
            "console test --region us --release fix-cast",
            "console preview --region us --list",
            "console apply --region us",
            "console preview --region us --drop fix-cast",
        ),
        "a second change beside the README's: tests/cli/test_preview.py, and tests/life/test_preview.py on Spark",
    ),
    **dict.fromkeys(
        (
            "console cleanup --region eu --previous --dry-run",
            "console cleanup --region eu --previous --hold 24h",
            "console cleanup --region eu --restore",
        ),
        "another end of the same regions: tests/cli/test_change.py, and tests/agent/test_hold.py over real logs",
    ),
    "ssh-keyscan -p 2222 10.20.0.7 >> known_hosts": "another host",
}
# By page, and there by the heading under which they stand: what runs in which place, in this order.
DEMO = ("README.md", "docs/receipts.md", "docs/review.md", "docs/demo.md")


def shown(page: str) -> tuple[Command, ...]:
    return tuple(command for command in commands(page) if command.text not in NEVER)


def first_change() -> tuple[Command, ...]:
    """The README's first change; before the demo is ended, what other pages show of the same regions."""
    story = [command for command in shown("README.md") if command.text.startswith((".venv", "$EDITOR"))]
    *before, stop = story
    others = [command for page in DEMO[1:] for command in shown(page)]
    return (*before, *others, stop)


def own_warehouse() -> tuple[Command, ...]:
    return tuple(command for command in shown("README.md") if command.text.startswith("console "))


def replication() -> tuple[Command, ...]:
    """The page's own example; what it begins in an empty folder comes after it."""
    return tuple(takewhile(lambda command: command.text != steps()[0], shown("docs/schema.md")))


def test_every_command_of_every_page_is_run_or_listed_with_the_reason_why_not() -> None:
    # what the page on schemas begins in an empty folder: tests/stores/test_page.py runs it, in its order
    elsewhere = {command for command in commands("docs/schema.md") if command.text in steps()}
    walked = {step for step in course("docs/walkthrough.md") if isinstance(step, Command)}  # test_walkthrough.py
    run = {*first_change(), *own_warehouse(), *replication(), *elsewhere, *walked}
    every = [command for page in PAGES for command in commands(page)]
    assert [str(command) for command in every if command not in run and command.text not in NEVER] == []
    assert sorted(NEVER) == sorted({command.text for command in every} & set(NEVER)), "listed, and on no page"
    assert len(run) > 20


def unknown(call: str) -> list[str]:
    """What of a call in a sentence the command line does not know: a command, one of its few words, or a flag of it."""
    result: click.Command = cli
    params = list(cli.params)
    parts = iter(call.replace("\\|", "|").split()[1:])
    for part in parts:
        word = part.strip("[]…()\"'").partition("=")[0]
        few = [
            param.type.choices
            for param in params
            if isinstance(param, click.Argument) and isinstance(param.type, click.Choice)
        ]
        if word == "--help":
            continue
        if word.startswith("--"):
            option = next((param for param in params if word in param.opts), None)
            if option is None:
                return [word]
            if isinstance(option, click.Option) and not option.is_flag and "=" not in part:
                next(parts, "")  # its value
        elif word.islower() and isinstance(result, click.Group):
            inner = result.get_command(click.Context(result), word)
            if inner is None:
                return [word]
            result, params = inner, [*params, *inner.params]
        elif word.islower() and few and word not in few[0]:
            return [word]
    return []


def test_every_call_in_a_sentence_is_one_that_the_command_line_knows() -> None:
    calls = [(page, call) for page in PAGES for call in mentioned(page)]
    assert len(calls) > 30
    assert [(page, call, wrong) for page, call in calls if (wrong := unknown(call))] == []


def missing(call: str) -> bool:
    """Whether make has no such target, or nobody such a module."""
    program, *words = call.split()
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return not {word for word in words if "=" not in word} <= {*targets}
    try:
        return find_spec(words[1]) is None
    except ModuleNotFoundError:
        return True


def test_every_target_and_module_in_a_sentence_is_there() -> None:
    calls = [(page, call) for page in PAGES for call in called(page)]
    assert len(calls) > 10
    assert [(page, call) for page, call in calls if missing(call)] == []
    assert missing("make denmo")
    assert missing("python -m tests.faults.reprot")
    assert missing("python -m tests.fault.report")


@pytest.mark.parametrize("call", ["console paln", "console plan --wat", "console schema aply", "console lock break"])
def test_a_call_that_the_command_line_does_not_know_is_found(call: str) -> None:
    assert unknown(call)


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (Seen(0, "\x1b[32mPlan: 1 region, 2 create\x1b[0m\r\n"), ""),
        (Seen(1, "Plan: 1 region\n"), "exits 1, the page says 0"),
        (Seen(0, "no plan\n"), "ends with 'no plan', the page says 'Plan: …'"),
        (Seen(0, "Traceback (most recent call last)\nPlan: 1 region\n"), "ends in a traceback"),
    ],
)
def test_what_a_page_promises_and_is_not_so_is_found(seen: Seen, wrong: str) -> None:
    result = look(Command("README.md", 1, "console plan", 0, "Plan: …"), seen, COLOURS)
    assert [wrong in one for one in result] == ([True] if wrong else [])
    controls = look(Command("README.md", 1, "console plan", 0, ""), Seen(0, "\x1b[32mok"), "a pipe")
    assert "is sent controls" in controls[0]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    try:
        yield tmp_path
    finally:
        env = sittings.environment(tmp_path)
        in_pipe("console demo --stop", tmp_path, env)
        for file in sorted((tmp_path / "regions").glob("eu.yaml")):
            in_pipe(f"console follow --region {file.stem} --stop", tmp_path, env)


def look(command: Command, seen: Seen, where: str) -> list[str]:
    """What is otherwise than the page says."""
    wrong = []
    if seen.code != command.code:
        wrong.append(f"{where} exits {seen.code}, the page says {command.code}")
    if not command.promised(seen.last):
        wrong.append(f"{where} ends with {seen.last!r}, the page says {command.last!r}")
    if "Traceback" in seen.text:
        wrong.append(f"{where} ends in a traceback")
    if where != COLOURS and "\x1b" in seen.text:
        wrong.append(f"{where} is sent controls of a terminal")
    return [f"{command}: {what}\n{ESCAPES.sub('', seen.text)[-3000:]}" for what in wrong]


def run(command: Command, folder: Path, env: Mapping[str, str]) -> list[str]:
    words = command.text.removeprefix(".venv/bin/").split()
    region = next((after for word, after in pairwise(words) if word == "--region"), "")
    forever = words[:2] == ["console", "follow"] and "--stop" not in words
    seen = on_terminal(command.text, folder, env, term=COLOURS, answer=region, until="serves" if forever else "")
    wrong = look(command, seen, COLOURS)
    if words[1] in ONCE or words[0] != "console":
        return wrong
    with ThreadPoolExecutor(2) as both:
        dumb = both.submit(on_terminal, command.text, folder, env, term="dumb")
        pipe = both.submit(in_pipe, command.text, folder, env)
    return [*wrong, *look(command, dumb.result(), "a dumb terminal"), *look(command, pipe.result(), "a pipe")]


@pytest.mark.spark
def test_a_first_change_and_all_that_pages_show_of_it(folder: Path) -> None:
    sittings.demo(folder)
    env = sittings.environment(folder)
    wrong = [what for command in first_change() for what in run(command, folder, env)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.spark
def test_an_own_warehouse_from_the_files_that_the_page_shows(folder: Path) -> None:
    sittings.own_warehouse(folder)
    env = sittings.environment(folder)
    wrong, quiet = [], []
    for command in own_warehouse():
        wrong += run(command, folder, env)
        if command.code == 3:  # at its gate
            (region,) = json.loads(in_pipe("console status --output json", folder, env).text)["regions"]
            quiet += [check for check in region["status"]["checks"] if check["check"] == "feed parse"]
    assert not wrong, "\n\n".join(wrong)
    # nobody writes the landing table meanwhile: that it is quiet keeps no gate shut
    (check,) = quiet
    assert (check["ok"], check["commits"], check["rows"]) == (True, 1, 400), check
    assert check["detail"].startswith("quiet since 20"), check


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.mark.stores
def test_an_applications_schema_is_carried_over_as_the_page_says(folder: Path, postgres: Postgres) -> None:
    sittings.replicated(folder, postgres.dsn())
    env = {**sittings.environment(folder), "DATABASE_URL": postgres.url()}
    wrong = []
    for command in replication():
        if "--phase post" in command.text:
            sittings.application_migrates(postgres.dsn())
        wrong += run(command, folder, env)
    assert not wrong, "\n\n".join(wrong)
