"""`console` itself: the table of its commands, and the exit code of every outcome."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from console.cli.flags import Flags, common, loss_options, refuse_readonly, report_options, run_options, write_options
from console.cli.interrupt import Interrupted
from console.cli.lazy import LazyCommand, LazyGroup
from console.cli.output import Output
from console.cli.wiring import CliContext, cli_context
from console.errors import ConsoleError, UsageError

# section → command → its module, below console.cli.commands
COMMANDS: dict[str, dict[str, LazyCommand]] = {
    "Begin": {
        "init": LazyCommand("init:init", "Write a commented inventory and a small pipeline into an empty folder."),
        "setup": LazyCommand(
            "setup:setup", "Fetch Delta's jars for the agents of this machine, each checked by its hash."
        ),
    },
    "Change the regions": {
        "plan": LazyCommand("rollout.plan_apply:plan", "Show what `apply` would do in each region."),
        "check": LazyCommand(
            "review.check:check", "Check the files, and plan them offline against a snapshot or an older commit."
        ),
        "adapt": LazyCommand("adapt:adapt", "Put an adapter in front of a landing table that others write."),
        "test": LazyCommand("testing.run:test", "Run the fixture tests of a pipeline: rows in, rows out."),
        "preview": LazyCommand(
            "preview:preview", "Build the pending change as a preview beside a region's live release."
        ),
        "apply": LazyCommand(
            "rollout.plan_apply:apply", "Roll a plan out to the regions, up to the gate; with --yes, through it."
        ),
        "status": LazyCommand(
            "rollout.status:status", "Show the state of each region's rollout and of its live feeds."
        ),
        "watch": LazyCommand(
            "rollout.status:watch", "Follow the rollouts under way until they end or wait at the gate."
        ),
        "playback": LazyCommand("rollout.playback:playback", "Play a recording of rollouts in the screens."),
        "promote": LazyCommand("rollout.gate:promote", "Open the gate: make the checked release live, in one commit."),
        "approve": LazyCommand("rollout.declared:approve", "Approve the promotion of a region that is at its gate."),
        "rollback": LazyCommand("rollout.gate:rollback", "Go back to the previous release, in one commit."),
    },
    "Control a rollout": {
        "pause": LazyCommand("rollout.control:pause", "Pause rollouts before their next batch; live feeds continue."),
        "tune": LazyCommand("rollout.tune:tune", "Change the limits of a running rollout from its next batch on."),
        "handover": LazyCommand(
            "rollout.handover:handover",
            "Print a summary for the next shift, as Markdown.",
        ),
        "accept-until": LazyCommand(
            "accept_until:accept_until",
            "Give regions the days until which landing tables take lines of older shapes, as the files say.",
        ),
        "note": LazyCommand("rollout.note:note", "Leave a note with the rollout of a region, for the next operator."),
        "resume": LazyCommand("rollout.control:resume", "Resume paused rollouts."),
        "retry": LazyCommand("rollout.control:retry", "Retry failed rollouts."),
        "cancel": LazyCommand("rollout.control:cancel", "Cancel a rollout and drop what it has built."),
        "discard": LazyCommand("rollout.control:discard", "Drop what a failed or cancelled rollout left behind."),
        "attach": LazyCommand("rollout.attach:attach", "Follow another console's rollout, or take it over."),
        "cleanup": LazyCommand("rollout.control:cleanup", "Drop table versions that no kept release uses."),
        "maintain": LazyCommand(
            "region.maintain:maintain", "Compact a region's tables, and delete files that are no longer needed."
        ),
    },
    "Read and feed a region": {
        "query": LazyCommand("query:query", "Run a query over a region's live tables, or over a preview's."),
        "endpoint": LazyCommand("query:endpoint", "Call an endpoint of a region's live release, or of a preview."),
        "copy": LazyCommand(
            "query:copy", "Run a copy of a region's live release, or of a preview, into which it then writes."
        ),
        "sink": LazyCommand("query:sink", "Run an export of a region's live release."),
        "profile": LazyCommand(
            "review.profile:profile",
            "List the keys that a landing table's JSON column carries: share of the rows, first seen, read by which query.",
        ),
        "ingest": LazyCommand("ingest:ingest", "Append a file of NDJSON events to a landing table, once per file."),
        "follow": LazyCommand("ingest:follow", "Run a region's agent here, as a service would."),
        "lock": LazyCommand("region.lock:lock", "Show which agent holds a region, or end it by force."),
        "agent": LazyCommand("ingest:agent", "Serve one request of a console that connects over SSH."),
    },
    "Follow an application's database": {
        "schema": LazyCommand(
            "schema:schema",
            "Apply changes of a PostgreSQL schema to ClickHouse, Iceberg and Delta before their rows arrive.",
        ),
    },
    "Prove what was done": {
        "history": LazyCommand("receipts:history", "List the rollouts that the regions remember."),
        "show": LazyCommand("receipts:show", "Show one rollout in full: who decided it, its batches and its receipts."),
        "diff": LazyCommand(
            "receipts.diff:diff", "Fetch some rows of one day that differ between two versions of a table."
        ),
        "verify": LazyCommand("receipts.verify:verify", "Check a rollout's receipts again, against the tables."),
    },
    "Look around": {
        "compare": LazyCommand("compare:compare", "Report what an edit of a query changes, without running it."),
        "snapshot": LazyCommand(
            "review.check:snapshot", "Write the live state of every region to a file, for planning elsewhere."
        ),
        "demo": LazyCommand(
            "environment:demo", "Three regions on this machine with live traffic and a change to make."
        ),
        "doctor": LazyCommand("environment:doctor", "Check this machine's prerequisites, and say how to fix them."),
        "info": LazyCommand("environment:info", "Show where console keeps its files, and the settings in effect."),
        "completion": LazyCommand("environment:completion", "Print the completion script of a shell."),
    },
}


class Console(LazyGroup):
    """The root command. Usage errors exit 64, because 2 means "there are changes" (plan --detailed-exitcode)."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        kwargs["standalone_mode"] = False
        try:
            code = super().main(words, *more, **kwargs)
        except (ConsoleError, click.ClickException) as error:
            code = _refused(error, words, kwargs.get("obj"))
        except Interrupted as gone:
            click.echo(gone.farewell or "interrupted", err=True)
            code = gone.exit_code
        except click.exceptions.Abort:
            click.echo("interrupted", err=True)
            code = 130
        sys.exit(code if isinstance(code, int) else 0)


def _refused(error: ConsoleError | click.ClickException, words: list[str], given: CliContext | None) -> int:
    flags = given.flags if given else Flags()
    if isinstance(error, click.ClickException):
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "console"
        error = UsageError(error.format_message(), hint=f"see {command} --help")
        # arguments that fail to parse leave no flags behind
        form = next((b for a, b in zip(words, [*words[1:], ""], strict=True) if a == "--output"), "")
        form = next((word[9:] for word in words if word.startswith("--output=")), form)
        flags = Flags(output="json") if form in ("json", "jsonl") else flags
    Output(flags).error(error, stream=bool(given and given.streaming))
    return error.exit_code


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        import console

        click.echo(f"console {console.__version__}")
        ctx.exit()


@click.group(
    "console",
    cls=Console,
    package="console.cli.commands",
    sections=COMMANDS,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND …]",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  console                            open the screen\n"
    "  console plan --regions eu,us       what would change, and why\n"
    "  console apply --yes                roll it out, wave after wave\n"
    "  console promote --region eu        open the gate by hand\n\n"
    "\b\nExit codes: 0 done · 1 failed · 2 changes (plan --detailed-exitcode) · 3 at the gate · 4 conflict\n"
    "            5 unreachable · 64 usage · 65 files, SQL or answers · 130, 143 interrupted",
)
@click.option("--headless", is_flag=True, help="Plan and apply without a screen, as `apply` does.")
@click.option("--dry-run", is_flag=True, help="With --headless: only plan.")
@click.option("--attached", is_flag=True, help="With --headless: the agents stop when this console does.")
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Record in a new file what the screen receives, for `console playback`.",
)
@report_options
@run_options
@loss_options
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@click.pass_context
def cli(ctx: click.Context, headless: bool, dry_run: bool, attached: bool, record: Path | None) -> int:
    """Carry a data-pipeline schema change through many regions: plan, backfill, validate, promote, roll back.

    Without a command it opens the screen.
    """
    if ctx.invoked_subcommand:
        if headless:
            raise UsageError(f"--headless cannot be combined with {ctx.invoked_subcommand}", hint="console --headless")
        if record:
            raise UsageError("--record is for the screen, without a command", hint="console watch --record FILE")
        return 0
    if headless and record:
        raise UsageError("--record is for the screen", hint="beside it: console watch --record FILE")
    if headless:
        from console.cli.commands.rollout.plan_apply import headless_run

        if not dry_run:
            refuse_readonly(ctx, "--headless")
        return headless_run(dry_run=dry_run, attached=attached)
    context = cli_context()
    if context.flags.junit or context.flags.report:
        raise UsageError("--junit and --report are for a run without a screen", hint="add --headless")
    from console.cli.wiring import open_project, recorded, why_no_screen

    screen, why = context.wiring.screen, why_no_screen()
    if screen is None or why:
        click.echo(ctx.get_help())
        reason = why or "there is no screen here"
        click.echo(f"error: {reason}\nhint: console plan, console status and console apply need none", err=True)
        return 64

    project = open_project()
    fleet = project.open_fleet(steering=True, remember=True, runs_on=not context.flags.readonly)
    with recorded(fleet, record):
        return screen(fleet, title=project.pipeline, coach=True, readonly=context.flags.readonly)


cli.params.extend(common())
