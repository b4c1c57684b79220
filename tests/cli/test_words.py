"""The command line's words as the screen's `:` reads them: the same commands, the same refusals, nothing is run."""

import pytest

from console.cli.root import cli
from console.cli.words import ScreenWords
from console.errors import ConsoleError
from console.runner.words import ReadCommand
from console.tui.commands.line import TypedCommand, typed_command

WORDS = ScreenWords(cli)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("promote --region eu", ReadCommand(name="promote", regions=("eu",), bare=True)),
        ("promote --region=eu --yes", ReadCommand(name="promote", regions=("eu",), bare=True)),
        ("pause --regions eu,us", ReadCommand(name="pause", regions=("eu", "us"), bare=True)),
        ("apply", ReadCommand(name="apply", bare=True)),
        ("apply --yes saved.plan", ReadCommand(name="apply")),
        ("apply --regions @wave1", ReadCommand(name="apply", regions=("@wave1",))),
        ("status --output json", ReadCommand(name="status")),
        ("history", ReadCommand(name="history", bare=True)),
        ("promote --help", ReadCommand(name="promote")),
    ],
)
def test_a_command_is_read_as_the_command_line_reads_it(typed: str, read: ReadCommand) -> None:
    assert WORDS.read(typed) == read


@pytest.mark.parametrize("typed", ["promot", "pause --regoin eu", "show", "promote 'eu", ""])
def test_what_the_command_line_refuses_is_refused(typed: str) -> None:
    with pytest.raises(ConsoleError):
        WORDS.read(typed)


def test_commands_and_flags_are_completed_with_their_help() -> None:
    assert [word for word, _ in WORDS.complete("prom")] == ["promote"]
    assert "--region" in [word for word, _ in WORDS.complete("promote --reg")]
    assert not WORDS.complete("promote 'x")
    assert all(help for _, help in WORDS.complete(""))


def test_a_command_is_about_the_region_under_the_cursor_unless_it_names_others() -> None:
    assert typed_command("pause", WORDS, "eu") == TypedCommand(line="console pause", action="pause", regions=("eu",))
    assert typed_command("apply", WORDS, "eu").regions == ()
    assert typed_command("console promote --region us", WORDS, "eu").regions == ("us",)
    assert typed_command("query 'select 1'", WORDS, "eu") == TypedCommand(
        line="console query 'select 1'", action=None, regions=()
    )
