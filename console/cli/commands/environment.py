"""`console demo`, `doctor`, `info` and `completion`."""

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from console import paths
from console.cli.doctor import examine
from console.cli.flags import command, root_of
from console.cli.format import table
from console.cli.output import Output
from console.cli.wiring import cli_context, tool, why_no_screen
from console.demo.folder import project_root
from console.errors import ConsoleError
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.prerequisites import Prerequisite


@command(
    "demo",
    changes=True,
    examples="""console demo
    console demo --headless
    console demo --prepare && console plan
    console demo --stop""",
)
@click.option("--prepare", is_flag=True, help="Build the regions and stop there, without traffic.")
@click.option("--live", is_flag=True, help="With --prepare: leave producers and agents running.")
@click.option("--stop", is_flag=True, help="End the demo's own processes.")
@click.option("--reset", is_flag=True, help="End the demo's own processes, and start over.")
@click.option("--headless", is_flag=True, help="Run the rollout to the end without a screen, and check it.")
@click.option("--log", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Your own access log.")
@click.option(
    "--plant", metavar="FAULT", help="Plant a bug (skip-day, double-batch, early-promote), which the check must find."
)
@click.option(
    "--chaos", is_flag=True, help="Kill an agent in the middle of its history, and compare all rows at the end."
)
def demo(
    *,
    prepare: bool,
    live: bool,
    stop: bool,
    reset: bool,
    headless: bool,
    log: Path | None,
    plant: str | None,
    chaos: bool,
) -> int:
    """Three regions on this machine with live traffic and a change to make.

    In an empty folder it writes its own project first. Without a terminal, or on a dumb one, it runs headless to the end and checks itself.
    """
    import console.demo

    named = cli_context().flags.project
    screen = None if headless or why_no_screen() else cli_context().wiring.screen
    return console.demo.command(
        root_of(cli_context().flags) if stop else project_root(named),
        prepare=prepare,
        live=live,
        stop=stop,
        reset=reset,
        log=log,
        plant=plant or "",
        chaos=chaos,
        screen=screen,
    )


@command("doctor", examples="console doctor\nconsole doctor --output json")
def doctor() -> int:
    """Check this machine's prerequisites, and say how to fix them.

    Java 17, Delta's jars, disk, sockets, journal, terminal; inside a project also its files and warehouses, and the
    hosts of its regions behind SSH: host key, login, console's version there, and what an agent needs.
    """
    output = Output(cli_context().flags)
    findings = examine(cli_context().flags)
    if output.json:
        output.document({"checks": [_finding_data(finding) for finding in findings]})
    else:
        for finding in findings:
            output.data(_finding_text(output, finding))
    return 1 if any(finding.ok is False for finding in findings) else 0


def _finding_text(output: Output, finding: "Prerequisite") -> str:
    word, colour = {True: ("ok", "green"), False: ("BAD", "red"), None: ("note", "yellow")}[finding.ok]
    fix = f"\n      {safe_text(finding.fix)}" if finding.fix else ""
    return f"{output.paint(f'{word:<4}', colour)}  {safe_text(finding.name)}: {safe_text(finding.detail)}{fix}"


def _finding_data(finding: "Prerequisite") -> dict[str, Any]:
    return {"name": finding.name, "ok": finding.ok, "detail": finding.detail, "fix": finding.fix}


@command("info", examples="console info\nconsole info --output json")
def info() -> int:
    """Show where console keeps its files, and the settings in effect.

    Each setting with its source: a flag, an environment variable, or the default.
    """
    output = Output(cli_context().flags)
    places = _places()
    settings = [(name, value, cli_context().sources.get(name, "default")) for name, value in _settings()]
    if output.json:
        entries = [{"name": name, "value": value, "source": source} for name, value, source in settings]
        output.document({"places": dict(places), "settings": entries})
        return 0
    rows = [[name, safe_text(value), ""] for name, value in places]
    rows += [[f"--{name.replace('_', '-')}", safe_text(value), source] for name, value, source in settings]
    output.data(table(["", "", ""], rows))
    return 0


def _settings() -> list[tuple[str, str]]:
    flags = cli_context().flags
    return [
        ("project", str(flags.project or "")),
        ("pipeline", flags.pipeline or ""),
        ("regions", flags.regions),
        ("output", flags.output),
        ("no_input", str(flags.no_input).lower()),
        ("no_color", str(flags.no_color).lower()),
    ]


def _places() -> list[tuple[str, str]]:
    try:
        project = str(root_of(cli_context().flags))
    except ConsoleError as error:
        project = f"none ({error})"
    try:
        sockets = str(paths.runtime_dir())
    except OSError as error:
        sockets = f"none ({error})"
    return [
        ("console", tool()),
        ("python", f"{platform.python_version()} {sys.executable}"),
        ("project", project),
        ("journal", str(paths.state_dir() / "journal.db")),
        ("logs", str(paths.log_dir())),
        ("sockets", sockets),
        ("jars", str(paths.jars_dir())),
        ("java", os.environ.get("JAVA_HOME", "from PATH")),
    ]


@command("completion", examples="console completion bash > ~/.local/share/bash-completion/completions/console")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell."""
    cls = get_completion_class(shell)
    root = click.get_current_context().find_root()
    if cls is not None:
        click.echo(cls(root.command, {}, "console", "_CONSOLE_COMPLETE").source())
    return 0
