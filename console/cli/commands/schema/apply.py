"""`console schema apply`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.schema import landing
from console.cli.flags import command, root_of
from console.cli.format import count, size
from console.cli.output import Output, as_data
from console.cli.wiring import cli_context, who
from console.errors import AtGate, ConsoleError
from console.project import load
from console.propagation.translate.describe import what, why
from console.runner.exit_codes import worst
from console.runner.journal import Journal
from console.runner.migrations import MigrationRequest, MigrationRun
from console.stores.apply import MigrationRunner, refuse_waiting
from console.stores.files import concerning, read_changes, read_plan, sites
from console.text import safe_text

if TYPE_CHECKING:
    from console.cli.commands.schema.landing import Landing
    from console.model.region import Region
    from console.propagation.migration import Phase
    from console.runner.migrations import SiteOutcome
    from console.stores.apply import StepPlan, StepResult
    from console.stores.files import MigrationFile, ReplicationConfig, Site
    from console.stores.protocol import Store

Seen = tuple["Site", "tuple[StepPlan, ...]", "ConsoleError | None"]
_SYMBOLS = {"applied": "+", "unchanged": ".", "waiting": "?", "failed": "!", "skipped": " "}


@command(
    "apply",
    changes=True,
    examples="""console schema apply --phase pre --dry-run
    console schema apply --phase pre --store clickhouse --store lake --yes
    console schema apply --phase post --regions eu,us --allow-destructive --yes""",
)
@click.option(
    "--phase",
    type=click.Choice(["pre", "post"]),
    required=True,
    help="Before or after the application's own migration.",
)
@click.option(
    "--store", "stores", multiple=True, metavar="NAME", help="Only this store; may be repeated. Default: all."
)
@click.option("--dry-run", is_flag=True, help="Only print the statements.")
@click.option(
    "--allow-destructive", is_flag=True, help="Include changes that may lose stored values: drops, narrowed types."
)
@click.option("--recorded", is_flag=True, help="Only record that the stores have the changes already.")
@click.option(
    "--take-over",
    is_flag=True,
    help="Take over a store's lock from a console on another machine that is gone for good.",
)
def apply(
    phase: "Phase", stores: tuple[str, ...], dry_run: bool, allow_destructive: bool, recorded: bool, take_over: bool
) -> int:
    """Apply the committed migrations of one phase to the stores.

    Wave by wave; the next wave begins only after the whole one before it has succeeded. Each store records what was
    applied to it: repeating the command, also after a kill at any statement, has the same result. Without --yes it
    stops at each region's gate.
    """
    work = ApplyCall.open(stores)
    output = Output(cli_context().flags)
    request = MigrationRequest(phase, allow_destructive, take_over, recorded)
    if dry_run:
        return work.preview(output, request)
    return work.run(output, request)


class ApplyCall:
    """One call: the plan, its sites, and the migrations."""

    def __init__(
        self, root: Path, plan: "ReplicationConfig", sites: "Sequence[Site]", changes: "Sequence[MigrationFile]"
    ) -> None:
        self.root = root
        self.plan = plan
        self.sites = tuple(site for site in sites if not site.pipeline)
        self.owned = tuple(site for site in sites if site.pipeline)
        self.changes = tuple(changes)

    @classmethod
    def open(cls, stores: Sequence[str], *, migrations: bool = True) -> "ApplyCall":
        """raises Problems, UsageError for what is wrong in the files or on the command line"""
        flags = cli_context().flags
        root = root_of(flags)
        plan = read_plan(root, flags.pipeline)
        regions = regions_of(root)
        changes = concerning(plan, read_changes(root, plan.pipeline)) if migrations else ()
        return cls(root, plan, sites(plan, regions, stores), changes)

    def runner(self, site: "Site", store: "Store") -> "MigrationRunner":
        asker = who()
        dialect = site.target.dialect
        return MigrationRunner(
            store,
            site.target,
            self.plan.replication,
            self.changes,
            lambda change, table: dialect.translate(change.migration, table, change.id),
            by=asker.name,
            host=asker.host,
        )

    def preview(self, output: Output, request: "MigrationRequest") -> int:
        """Print the remaining steps, store by store."""
        shown = [self._seen(site, request) for site in self.sites]
        files = self._files(request)
        if output.json:
            document = {"stores": [todo_data(*entry) for entry in shown], "edits": list(map(landing.data, files.edits))}
            output.document({"phase": request.phase, **document})
        else:
            lines = [line for text in folded(shown) for line in text]
            lines += [line for edit in files.edits for line in landing.lines(edit)]
            output.data("\n".join(lines) or "nothing to do")
        return _complained(output, [*(refusal for _, _, refusal in shown), files.refusal])

    def _files(self, request: "MigrationRequest") -> "Landing":
        """The phase's changes to the files of pipelines that own a store's tables."""
        from console.cli.commands.schema.landing import landing

        owned = [(site.pipeline, site.target) for site in self.owned]
        return landing(
            self.root,
            self.plan,
            owned,
            self.changes,
            phase=request.phase,
            allow_destructive=request.allow_destructive,
            recorded=request.recorded,
        )

    def _seen(self, site: "Site", request: "MigrationRequest") -> "Seen":
        todo: tuple[StepPlan, ...] = ()
        store = site.open()
        try:
            todo = self.runner(site, store).todo(request.phase, recorded=request.recorded)
            refuse_waiting(site.name, todo, recorded=request.recorded)
        except ConsoleError as error:
            return site, todo, error
        finally:
            store.close()
        return site, todo, None

    def run(self, output: Output, request: "MigrationRequest") -> int:
        """Apply, and report the outcome of each store."""

        def on_step(site: "Site", done: "StepResult") -> None:
            output.info(f"{site.name}: {safe_text(done.change.id)}: {_did(done)}")

        files = self._files(request)
        journal = Journal()
        migrations = MigrationRun(
            self.plan.pipeline,
            journal,
            who(),
            runner=self.runner,
            gate=lambda site, todo: gate(output, site, todo, request),
            on_step=on_step,
        )
        try:
            outcomes = list(migrations.run(self.sites, request))
        finally:
            journal.close()
        errors = [outcome.error for outcome in outcomes]
        edits = () if any(errors) else files.edits
        for edit in edits:
            landing.write(self.root, edit)
        if output.json:
            document = {"stores": list(map(outcome_data, outcomes)), "edits": list(map(landing.data, edits))}
            output.document({"phase": request.phase, **document})
        else:
            lines = [outcome_text(outcome) for outcome in outcomes]
            lines += [line for edit in edits for line in landing.lines(edit)]
            output.data("\n".join(lines) or "nothing to do")
            if edits:
                output.info(
                    "the pipeline's files were edited: console plan shows the consequences, console apply rolls them out"
                )
        if files.edits and not edits:
            output.info("the pipeline's files stay unchanged until every store has all of it")
        return _complained(output, [*errors, files.refusal])


def _complained(output: Output, errors: "Sequence[ConsoleError | None]") -> int:
    """Print every error; returns the exit code."""
    for error in filter(None, errors):
        output.print_error(error)
    return worst(errors)


def regions_of(root: Path) -> "tuple[Region, ...]":
    """The selected regions, all if none is named."""
    return load(root).select(cli_context().flags.regions or "all")


def gate(output: Output, site: "Site", todo: "Sequence[StepPlan]", request: "MigrationRequest") -> ConsoleError | None:
    """Why a store's work waits for a person, or None: the region's own policy decides."""
    policy = site.region.policy.promote
    left = count(sum(not one.waits for one in todo), "migration")
    again = f"console schema apply --phase {request.phase} --store {site.target.name} --regions {site.region.name}"
    flags = {
        " --recorded": request.recorded,
        " --allow-destructive": request.allow_destructive,
        " --take-over": request.take_over,
    }
    again += "".join(flag for flag, given in flags.items() if given)
    if policy == "auto" or (output.flags.yes and policy != "never"):
        return None
    if not output.may_ask:
        on = ", on a terminal" if policy == "never" else " --yes"
        return AtGate(f"{site.name}: {left} must be confirmed by a person", hint=again + on, code="E_GATE")
    for line in todo_text(site.name, site, todo, None):
        click.echo(line, err=True)
    typed = click.prompt(f"type {site.region.name} to apply", default="", show_default=False, err=True)
    if typed.strip() != site.region.name:
        return AtGate(f"{site.name}: not done: another name was typed", hint=again, code="E_GATE")
    return None


def folded(shown: "Sequence[Seen]") -> list[list[str]]:
    """The remaining steps, store by store; stores with the same steps share one entry."""
    alike: dict[tuple[str, ...], list[Seen]] = {}
    for site, todo, error in shown:
        weightless = [replace(one, rewrites=0) for one in todo]
        body = (str(error or ""), site.target.kind, *todo_text("", site, weightless, None)[1:])
        alike.setdefault(body, []).append((site, todo, error))
    document = []
    for same in alike.values():
        site, todo, error = same[0]
        all_of = [
            replace(one, rewrites=sum(other[rank].rewrites for _, other, _ in same)) for rank, one in enumerate(todo)
        ]
        document.append(todo_text(", ".join(site.name for site, _, _ in same), site, all_of, error))
    return document


def todo_text(names: str, site: "Site", todo: "Sequence[StepPlan]", error: ConsoleError | None) -> list[str]:
    """A store's statements, each after the sentence with its reason."""
    if not todo:
        return [f"! {safe_text(str(error))}" if error else f"{names}: nothing to do"]
    lines = [f"{names} ({site.target.kind})"]
    for one in todo:
        lines.append(f"  {safe_text(one.change.id)} → {safe_text(one.place)}" + _remark(one))
        lines += [f"    ! {safe_text(warning)}" for warning in one.warnings]
        for step in one.steps:
            lines += [f"    -- {safe_text(why(step))}", *(f"    {safe_text(line)}" for line in what(step).splitlines())]
    return lines


def _remark(one: "StepPlan") -> str:
    if one.waits:
        return f": waits for {safe_text(one.waits.id)} ({one.waits.migration.phase})"
    if one.announce:
        return ": announced to consumers: the new names come with the next migration of the database"
    if one.rewrites:
        return f": {size(one.rewrites)} are rewritten"
    return "" if one.steps else ": nothing left but to record it"


def todo_data(site: "Site", todo: "Sequence[StepPlan]", error: ConsoleError | None) -> dict[str, Any]:
    """For `--output json`."""
    migrations = [
        {
            "migration": one.change.id,
            "table": one.place,
            "destructive": one.destructive,
            "announces": one.announce,
            "statements": [what(step) for step in one.steps],
            "warnings": list(one.warnings),
            "rewrites_bytes": one.rewrites,
            "waits_for": one.waits.id if one.waits else None,
        }
        for one in todo
    ]
    named = {"store": site.target.name, "region": site.region.name, "kind": site.target.kind}
    return {**named, "migrations": migrations, "error": as_data(error) if error else None}


def outcome_text(outcome: "SiteOutcome") -> str:
    """One line per store."""
    statements = sum(done.operation is not None for done in outcome.done)
    closed = sum(done.operation is None and not done.announced for done in outcome.done)
    figures = f", {count(closed, 'migration')}, {count(statements, 'statement')}" if outcome.done else ""
    return f"{_SYMBOLS[outcome.state]} {outcome.site.name}: {outcome.state}{figures}"


def outcome_data(outcome: "SiteOutcome") -> dict[str, Any]:
    """For `--output json`."""
    applied = [done.change.id for done in outcome.done if done.operation is None and not done.announced]
    announced = [done.change.id for done in outcome.done if done.announced]
    statements = [what(done.operation) for done in outcome.done if done.operation is not None]
    return {
        "store": outcome.site.target.name,
        "region": outcome.site.region.name,
        "state": outcome.state,
        "applied": applied,
        "announced": announced,
        "statements": statements,
        "error": as_data(outcome.error) if outcome.error else None,
    }


def _did(done: "StepResult") -> str:
    if done.announced:
        return "announced"
    return "applied" if done.operation is None else safe_text(" ".join(what(done.operation).split()))
