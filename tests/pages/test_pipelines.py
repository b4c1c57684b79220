"""The pipelines of docs/ci: each is YAML, and each call of console in it is one that the command line takes."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring
from console.errors import ConsoleError
from tests.pages.blocks import ROOT

PIPELINES = sorted((ROOT / "docs" / "ci").iterdir())
SCRIPTS = ("run", "script", "before_script", "after_script")
KEYWORDS = {"||", "&&", "|", ";", "do", "then", "else"}
REDIRECTIONS = {">", ">>", "<"}


class Unique(yaml.SafeLoader):
    """Refuses a key that occurs twice, as the forges do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        assert len(keys) == len(set(keys)), f"line {node.start_mark.line + 1}: a key twice"
        return dict(super().construct_mapping(node, deep))


def loaded(path: Path) -> dict[Any, Any]:
    document = yaml.load(path.read_text(), Unique)
    assert isinstance(document, dict)
    return document


def scripts(node: Any) -> Iterator[str]:
    """Every shell text of a pipeline, wherever it stands."""
    match node:
        case dict():
            for key, value in node.items():
                if key in SCRIPTS:
                    yield from value if isinstance(value, list) else [value]
                else:
                    yield from scripts(value)
        case list():
            for value in node:
                yield from scripts(value)


def calls(text: str) -> Iterator[list[str]]:
    """The words of each call of console in a shell text, without what the shell itself takes."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word not in KEYWORDS:
                words.append(word)
                continue
            if words[:1] == ["console"]:
                yield words[1 : next((at for at, each in enumerate(words) if each in REDIRECTIONS), len(words))]
            words = []


def parsed(words: list[str]) -> None:
    """Parse as the program does, without running.

    raises  click's or console's own error for words that are refused
    """
    given = CliContext(Wiring(lambda regions: {}))
    if not words or words[0].startswith("-"):
        context = cli.make_context("console", list(words), obj=given)
        assert context.params["headless"], "a screen has no place in a pipeline"
        return
    with click.Context(cli, info_name="console", obj=given) as parent:
        name, command, rest = cli.resolve_command(parent, list(words))
        assert command is not None
        command.make_context(name, rest, parent=parent)


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.name)
def test_a_pipeline_is_yaml_and_calls_console_as_it_is(pipeline: Path) -> None:
    results = [words for text in scripts(loaded(pipeline)) for words in calls(text)]
    assert results
    for words in results:
        parsed(words)


@pytest.mark.parametrize(
    "words",
    [["--headless", "--juint", "a.xml"], ["promot"], ["apply", "--report", "r.pdf"], ["plan", "--junit", "a"], []],
)
def test_a_call_that_the_program_refuses_is_refused_here(words: list[str]) -> None:
    with pytest.raises((click.ClickException, ConsoleError, AssertionError)):
        parsed(words)


def test_the_calls_of_a_line_are_those_between_the_shells_own_words() -> None:
    line = "code=0; console check --output markdown > a.md || code=$?  # console no\nfor p in a; do console test; done"
    assert list(calls(line)) == [["check", "--output", "markdown"], ["test"]]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_every_pipeline_asks_a_person_before_a_wave_and_leaves_its_reports_whatever_happens(forge: str) -> None:
    """The promise of the page: no job promotes by itself, and each rollout keeps its files after a failure as well."""
    document = loaded(ROOT / "docs" / "ci" / f"{forge}-rollout.yaml")
    jobs = document["jobs"] if forge == "github" else {name: job for name, job in document.items() if "script" in job}
    for name, job in jobs.items():
        words = [call for text in scripts(job) for call in calls(text)]
        if any(call[0] == "promote" for call in words):
            waits = job.get("environment") == "production-gate" or any(
                rule.get("when") == "manual" for rule in job["rules"]
            )
            assert waits, name
        if any("--junit" in call for call in words):
            uploads = [step for step in job.get("steps", ()) if "upload-artifact" in str(step.get("uses"))]
            kept = uploads[-1]["if"] if uploads else job["artifacts"]["when"]
            assert kept in ("always()", "always"), name
