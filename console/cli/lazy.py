"""Command groups whose commands are imported when they are called, from a table of names."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from console.cli.wiring import choices
from console.errors import UsageError


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is not imported yet.

    target  `module:function`, the module below the group's package
    help    the first line of its help
    """

    target: str
    help: str


class LazyGroup(click.Group):
    """A group that lists its commands by section and imports one when it is called.

    package   the package below which the commands' modules are
    sections  title → command name → its target
    """

    def __init__(
        self, *args: Any, package: str, sections: Mapping[str, Mapping[str, LazyCommand]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._package = package
        self._sections = sections
        self._lazy = {name: command for section in sections.values() for name, command in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self._lazy.get(cmd_name)
        if lazy is None:
            return None
        module, function = lazy.target.split(":")
        command: click.Command = getattr(import_module(f"{self._package}.{module}"), function)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in self._lazy:
            of = f" in {self.name}" if ctx.parent else ""
            raise UsageError(f"no command {args[0]!r}{of}", **choices(list(self._lazy), args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, command.help) for name, command in section.items()])
