"""Output of the command line: data on stdout, messages on stderr, errors in two lines."""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from console.cli.flags import Flags
from console.errors import ConsoleError, Problems, type_name
from console.model.codec import encode
from console.text import redacted, redacted_data, safe_text

FORMAT_VERSION = 1
_SHOWN = 50  # maximum of printed problems; more of them usually have one cause


class Output:
    """Prints in the form selected by the flags. Text from outside is made safe here or by the function that builds it."""

    def __init__(self, flags: Flags) -> None:
        self.flags = flags
        plain = flags.no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        self.colour = not plain and sys.stdout.isatty()

    @property
    def json(self) -> bool:
        return self.flags.output in ("json", "jsonl")

    @property
    def may_ask(self) -> bool:
        """Whether a person is present and may be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.flags.no_input

    def paint(self, text: str, colour: str) -> str:
        """Colour is never the only signal: symbols or words say the same. "" is the terminal's own colour."""
        return click.style(text, fg=colour) if self.colour and colour else text

    def data(self, text: str) -> None:
        click.echo(text, color=self.colour)

    def document(self, payload: Mapping[str, Any]) -> None:
        """One JSON object, the whole answer (one line with jsonl)."""
        indent = 2 if self.flags.output == "json" else None
        self.data(
            json.dumps({"format_version": FORMAT_VERSION, **redacted_data(payload)}, indent=indent, allow_nan=False)
        )

    def line(self, payload: Mapping[str, Any]) -> None:
        """One event of a stream."""
        self.data(
            json.dumps(
                {"format_version": FORMAT_VERSION, **redacted_data(payload)}, separators=(",", ":"), allow_nan=False
            )
        )
        sys.stdout.flush()

    def info(self, text: str) -> None:
        if not self.flags.quiet:
            click.echo(text, err=True)

    def detail(self, text: str) -> None:
        """For `-v`."""
        if self.flags.verbose:
            self.info(text)

    def error(self, error: ConsoleError, *, stream: bool = False) -> None:
        """`error: …` and `hint: …` on stderr; with JSON also an object on stdout."""
        if self.json and stream:
            self.line({"type": "diagnostic", "severity": "error", **as_data(error)})
        elif self.json:
            self.document({"error": as_data(error)})
        for text in as_text(error):
            click.echo(text, err=True)

    def print_region_error(self, region: str, error: ConsoleError) -> None:
        """`print_error` for one region among several, with its name in front unless the message has it."""
        self.print_error(error, region_lead(region, error))

    def print_error(self, error: ConsoleError, lead: str = "") -> None:
        """Print an error that is already part of the data: its two lines, on stderr only."""
        first, *rest = as_text(error)
        for text in [first.replace("error: ", f"error: {safe_text(lead)}", 1), *rest]:
            click.echo(text, err=True)


def region_lead(region: str, error: ConsoleError) -> str:
    """`eu: `, or "" where the message already has it in front."""
    return "" if error.region == region else f"{region}: "


def as_data(error: ConsoleError) -> dict[str, Any]:
    """An error for programs; text stays exact, JSON escapes it."""
    data: dict[str, Any] = {
        "type": type_name(error),
        "message": redacted(str(error)),
        "hint": redacted(error.hint),
        "code": error.code,
        "exit_code": error.exit_code,
    }
    if isinstance(error, Problems):
        data["problems"] = [
            {
                "code": problem.code,
                "severity": problem.severity,
                "message": redacted(problem.message),
                "where": problem.where,
                "node": problem.node,
                "hint": problem.hint,
                "remedies": encode(problem.remedies),
            }
            for problem in error.problems
        ]
    return data


def as_text(error: ConsoleError) -> list[str]:
    """An error for people: all problems at once, each with its hint."""
    if not isinstance(error, Problems) or not error.problems:
        return _pair(str(error), error.hint)
    lines = [line for problem in error.problems[:_SHOWN] for line in _pair(str(problem), problem.hint)]
    if (more := len(error.problems) - _SHOWN) > 0:
        lines.append(f"error: and {more} more")
    return lines


def _pair(message: str, hint: str) -> list[str]:
    # an error may quote source with a caret below it: line breaks stay, everything else is made safe
    first, *rest = redacted(message).splitlines() or [""]
    lines = [f"error: {safe_text(first)}", *(f"       {safe_text(line)}" for line in rest)]
    return [*lines, f"hint: {safe_text(redacted(hint))}"] if hint else lines
