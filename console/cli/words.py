"""The command line's own words for the screen's `:`: completed and parsed by the same commands, but not run."""

import shlex
from collections.abc import Sequence

import click
from click.core import ParameterSource
from click.shell_completion import ShellComplete

from console.cli.wiring import CliContext, Wiring
from console.errors import UsageError
from console.runner.words import ReadCommand

QUIET = frozenset(("region", "regions", "yes", "no_input"))  # flags that the screen's own dialogs replace


def _words(typed: str) -> list[str]:
    try:
        return shlex.split(typed)
    except ValueError as error:
        raise UsageError(f"{error}", hint="close the quote") from None


class ScreenWords:
    """The words of `console`, as one typed line."""

    def __init__(self, root: click.Group) -> None:
        self._root = root

    def _context(self) -> CliContext:
        return CliContext(Wiring(lambda regions: {}))

    def complete(self, typed: str) -> Sequence[tuple[str, str]]:
        """Possible completions of the last typed word, each with its help; () if the line cannot be parsed."""
        last = "" if typed.endswith(" ") or not typed else typed.rsplit(" ", maxsplit=1)[-1]
        try:
            before = _words(typed[: len(typed) - len(last)])
            completer = ShellComplete(self._root, {"obj": self._context()}, "console", "_CONSOLE_COMPLETE")
            items = completer.get_completions(before, last)
        except (click.ClickException, UsageError):
            return ()
        return [(item.value, (item.help or "").split("\n")[0]) for item in items]

    def read(self, typed: str) -> ReadCommand:
        """raises  UsageError as the command line would"""
        words = _words(typed)
        if not words:
            raise UsageError("no command", hint="tab offers the commands")
        given = self._context()
        try:
            with click.Context(self._root, info_name="console", obj=given) as parent:
                name, command, rest = self._root.resolve_command(parent, words)
                if name is None or command is None:
                    raise UsageError(f"no command {words[0]!r}", hint="tab offers the commands")
                read = command.make_context(name, list(rest), parent=parent)
        except click.exceptions.Exit:
            return ReadCommand(name=words[0])  # --help and the like: a shell prints it
        except click.ClickException as error:
            raise UsageError(error.format_message(), hint=f"console {words[0]} --help") from None
        arguments = [param.name for param in command.params if isinstance(param, click.Argument)]
        own = [param for param in read.params if read.get_parameter_source(param) is ParameterSource.COMMANDLINE]
        values = (value for name in arguments for value in _texts(read.params.get(name or "")))
        named = tuple(region for region in given.flags.regions.split(",") if region)
        plain = given.sources.keys() <= QUIET
        options = frozenset(param for param in own if param not in arguments)
        text = " ".join(read.params.get("text") or ()) if plain else ""
        return ReadCommand(name=name, regions=named, arguments=tuple(values), options=options, text=text, bare=plain)


def _texts(value: object) -> tuple[str, ...]:
    """An argument's words, whether one or several were allowed."""
    if isinstance(value, tuple):
        return tuple(map(str, value))
    return () if value is None else (str(value),)
