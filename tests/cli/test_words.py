"""Commands parsed for the screen's `:`: the same commands, the same refusals, nothing is run."""

import pytest

from console.cli.root import cli
from console.cli.words import ScreenWords
from console.errors import ConsoleError
from console.model.tuning import Tuning
from console.runner.words import ReadCommand
from console.tui.commands.line import LimitChange, TypedCommand, typed_command

WORDS = ScreenWords(cli)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("promote --region eu", ReadCommand(name="promote", regions=("eu",), bare=True)),
        ("promote --region=eu --yes", ReadCommand(name="promote", regions=("eu",), bare=True)),
        ("pause --regions eu,us", ReadCommand(name="pause", regions=("eu", "us"), bare=True)),
        ("apply", ReadCommand(name="apply", bare=True)),
        ("apply --yes saved.plan", ReadCommand(name="apply", arguments=("saved.plan",), bare=True)),
        ("apply --regions @wave1", ReadCommand(name="apply", regions=("@wave1",), bare=True)),
        ("status --output json", ReadCommand(name="status")),
        ("history", ReadCommand(name="history", bare=True)),
        (
            "tune --region eu rows=9 lag=none --reset",
            ReadCommand(
                name="tune", regions=("eu",), arguments=("rows=9", "lag=none"), options=frozenset({"reset"}), bare=True
            ),
        ),
        ("plan --witness", ReadCommand(name="plan", options=frozenset({"witness"}), bare=True)),
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


def test_a_command_with_words_that_the_screen_does_not_know_is_left_to_a_shell() -> None:
    for typed in ("apply saved.plan", "cancel --output json", "plan --detailed-exitcode", "tune rows=9 --output json"):
        command = typed_command(typed, WORDS, "eu")
        assert (command.action, command.limits) == (None, None), typed
    assert typed_command("plan --witness", WORDS, "eu").action == "witness"


def test_typed_limits_are_read_and_refused_as_by_the_command_line() -> None:
    command = typed_command("tune rows=60000 lag=30 --reset", WORDS, "eu")
    assert command.limits == LimitChange(tuning=Tuning(rows=60_000, lag=30.0), reset=True)
    assert command.regions == ("eu",)
    for wrong in ("tune", "tune rows", "tune rows=0", "tune rows=1 rows=2", "tune speed=1"):
        with pytest.raises(ConsoleError):
            typed_command(wrong, WORDS, "eu")
