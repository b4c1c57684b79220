"""The flags that every command takes, before or after its name, and the commands that take them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from console.errors import ConsoleError, UsageError
from console.model.schema import history_word

Output = Literal["text", "json", "jsonl", "markdown", "sarif"]
FORMS = ("text", "json", "jsonl")  # output forms of every command; further ones are in its `forms`
PAGE, MARKDOWN = ".html", ".md"  # suffixes of a report
COMMON = "Flags of every command"
_LOSS = re.compile(r"C\d{3}:[^:\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of the command line and of `CONSOLE_*`; the later one wins.

    regions  `eu,us`, `@wave1`, `all`, or "" if none were named
    allow_destructive  losses accepted by name, `C101:requests`
    history  the choice for a table's existing rows, `requests=carry`
    """

    project: Path | None = None
    pipeline: str | None = None
    regions: str = ""
    output: Output = "text"
    yes: bool = False
    no_input: bool = False
    no_color: bool = False
    readonly: bool = False
    quiet: bool = False
    verbose: int = 0
    allow_destructive: tuple[str, ...] = ()
    allow_protocol: bool = False
    history: tuple[str, ...] = ()
    probe: bool = False
    continue_without: str = ""
    on_failure: Literal["keep", "discard"] | None = None
    junit: Path | None = None
    report: Path | None = None


def root_of(flags: Flags) -> Path:
    """The project's root: `--project`, else the nearest one upward from the working directory."""
    from console.project import find

    return flags.project.resolve() if flags.project else find(Path.cwd())


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store the given values; the environment applies once, at the root, so that it never overrides a flag."""
    source = ctx.get_parameter_source(str(param.name))
    given = source is ParameterSource.COMMANDLINE or (source is ParameterSource.ENVIRONMENT and ctx.parent is None)
    if not given:
        return
    name = "regions" if param.name == "region" else str(param.name)
    ctx.obj.flags = replace(ctx.obj.flags, **{name: value})
    ctx.obj.sources[name] = "flag" if source is ParameterSource.COMMANDLINE else str(param.envvar)


def _regions(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    done, last = incomplete.rpartition(",")[::2]
    names = sorted(path.stem for path in _project_files(ctx, "regions/*.yaml") if not path.stem.startswith("_"))
    lead = f"{done}," if done else ""
    return [CompletionItem(lead + name) for name in [*names, "all"] if name.startswith(last)]


def _pipelines(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = sorted(path.parent.name for path in _project_files(ctx, "plans/*/pipeline.yaml"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _project_files(ctx: click.Context, pattern: str) -> list[Path]:
    """Files of the project named by the words so far, else of the enclosing one; none without a project."""
    try:
        return list(root_of(ctx.obj.flags).glob(pattern))
    except ConsoleError:
        return []


class _Common(click.Option):
    """An option that every command takes; its value goes to the session's flags."""

    def __init__(self, *names: str, **kwargs: Any) -> None:
        super().__init__(names, expose_value=False, callback=_keep, **kwargs)


def common() -> list[click.Option]:
    """The shared options, new for each command."""
    return [*_where(), *_how()]


def _where() -> list[click.Option]:
    return [
        _Common(
            "--project",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            envvar="CONSOLE_PROJECT",
            help="Folder that holds regions/ and plans/ (found upward from here).",
        ),
        _Common(
            "--pipeline",
            metavar="NAME",
            envvar="CONSOLE_PIPELINE",
            shell_complete=_pipelines,
            help="Pipeline below plans/ (default: the only one).",
        ),
        _Common(
            "--regions",
            metavar="eu,us|@wave1|all",
            envvar="CONSOLE_REGIONS",
            shell_complete=_regions,
            help="Regions to work on.",
        ),
        _Common("--region", metavar="NAME", shell_complete=_regions, help="The one region to work on."),
    ]


def _how() -> list[click.Option]:
    return [
        _Common(
            "--output",
            type=click.Choice(get_args(Output)),
            envvar="CONSOLE_OUTPUT",
            help="Format of stdout; json prints streams as JSON Lines; markdown and sarif for some commands.",
        ),
        _Common("--yes", is_flag=True, help="Answer every confirmation with yes."),
        _Common("--no-input", is_flag=True, envvar="CONSOLE_NO_INPUT", help="Never ask, even on a terminal."),
        _Common("--no-color", is_flag=True, envvar="CONSOLE_NO_COLOR", help="Plain text (NO_COLOR does the same)."),
        _Common("--readonly", is_flag=True, envvar="CONSOLE_READONLY", help="Refuse everything that changes a region."),
        _Common("-q", "--quiet", is_flag=True, help="Print only errors on stderr."),
        _Common("-v", "--verbose", count=True, help="Print more on stderr."),
    ]


def _losses(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    for name in value:
        if not _LOSS.fullmatch(name):
            raise UsageError(
                f"--allow-destructive {name!r:.60} is not the name of a loss", hint="CODE:TABLE, such as C101:requests"
            )
    _keep(ctx, param, value)


def _histories(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    for choice in value:
        table, is_one, word = choice.partition("=")
        try:
            if not (table and is_one and word.strip()):
                raise ValueError("expected TABLE=all, TABLE=carry, TABLE='from now' or TABLE='since 2026-11-01'")
            history_word(word)
        except ValueError as error:
            raise UsageError(f"--history {choice!r:.80}: {error}") from None
    tables = [choice.partition("=")[0] for choice in value]
    if twice := [table for table in dict.fromkeys(tables) if tables.count(table) > 1]:
        raise UsageError(f"--history names {twice[0]:.60} twice", hint="one choice for a table")
    _keep(ctx, param, value)


def loss_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options by which an operator accepts a plan's losses, one by one."""
    named = click.option(
        "--allow-destructive",
        multiple=True,
        metavar="CODE:TABLE",
        expose_value=False,
        callback=_losses,
        help="Accept this one loss, by its name in the plan; repeatable.",
    )
    protocol = click.option(
        "--allow-protocol",
        is_flag=True,
        expose_value=False,
        callback=_keep,
        help="Accept that a landing table's Delta protocol is upgraded permanently.",
    )
    probe = click.option(
        "--probe",
        is_flag=True,
        expose_value=False,
        callback=_keep,
        help="Check in the regions' data that all values of a changed type convert; reads the history of those columns.",
    )
    history = click.option(
        "--history",
        multiple=True,
        metavar="TABLE=all|'carry [as null]'|'from now'|'since DAY'",
        expose_value=False,
        callback=_histories,
        help="What happens to a table's existing rows, overriding its file; repeatable.",
    )
    return named(history(protocol(probe(function))))


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a run through the regions."""
    without = click.option(
        "--continue-without",
        metavar="tr,br",
        expose_value=False,
        callback=_keep,
        shell_complete=_regions,
        help="Finish the waves without these regions if they are unreachable; `apply` brings them up to date later.",
    )
    failure = click.option(
        "--on-failure",
        type=click.Choice(("keep", "discard")),
        expose_value=False,
        callback=_keep,
        help="Keep or discard the versions that a failed rollout has built, overriding the regions' policies.",
    )
    return without(failure(function))


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options for the files that a command writes for a CI."""
    junit = _written_file(
        "--junit",
        "FILE.xml",
        _keep,
        "Write each region's rollout and checks as JUnit's XML, however the command ends.",
    )
    report = _written_file(
        "--report",
        "FILE.html|.md",
        _report,
        "Write plan, timeline, days, checks and receipts of each region as one page, however the command ends.",
    )
    return junit(report(function))


def _written_file(
    name: str, metavar: str, keep: Callable[[click.Context, click.Parameter, Any], None], help_text: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option for a file that the command writes."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option(name, type=path, metavar=metavar, expose_value=False, callback=keep, help=help_text)


def _report(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    if value is not None and value.suffix not in (PAGE, MARKDOWN):
        raise UsageError(f"--report {str(value)!r:.80} is neither a page nor Markdown", hint="name it .html or .md")
    _keep(ctx, param, value)


class Command(click.Command):
    """A subcommand that also takes the shared flags, listed last in its help.

    changes  it changes a region (but for its --dry-run, if it has one): refused with --readonly
    forms    values of --output that it knows beside text, json and jsonl
    """

    def __init__(self, *args: Any, changes: bool = False, forms: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *common()]
        self.changes = changes
        self.forms = (*FORMS, *forms)

    def invoke(self, ctx: click.Context) -> Any:
        if self.changes and not ctx.params.get("dry_run"):
            refuse_readonly(ctx, str(self.name))
        flags = ctx.obj.flags
        if (flags.junit or flags.report) and not any(param.name == "report" for param in self.params):
            hint = "--junit and --report are for apply, promote, status and --headless"
            raise UsageError(f"{self.name} writes no report", hint=hint)
        if (form := flags.output) not in self.forms:
            raise UsageError(f"{self.name} does not support {form}", hint=f"--output {' or '.join(self.forms)}")
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)


def refuse_readonly(ctx: click.Context, what: str) -> None:
    """raises  UsageError with --readonly"""
    if ctx.obj.flags.readonly:
        source = ctx.obj.sources.get("readonly", "flag")
        raise UsageError(f"{what} changes a region, and --readonly forbids it", hint=f"it was set by {source}")


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The command's own options first, then those of every command."""
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        if record := param.get_help_record(ctx):
            (shared if isinstance(param, _Common) else own).append(record)
    for title, records in (("Options", own), (COMMON, shared)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def command(
    name: str, *, examples: str = "", changes: bool = False, forms: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], click.Command]:
    """A subcommand whose help ends in examples; the function's first line is its short help."""
    epilog = "\b\nExamples:\n" + "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines())
    return click.command(name, cls=Command, epilog=epilog if examples else None, changes=changes, forms=forms)
