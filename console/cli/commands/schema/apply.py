"""`console schema apply`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from console.cli.flags import command
from console.cli.voice import Voice, as_data
from console.cli.wiring import root_of, session, who
from console.errors import AtGate, ConsoleError
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.region import Region
    from console.propagation.migration import Phase
    from console.propagation.translate.operations import StoreOperation
    from console.runner.schema import Order, SiteOutcome
    from console.stores.carry import Carrier, Done, Todo
    from console.stores.files import Change, Plan, Site
    from console.stores.protocol import Store

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
@click.option("--allow-destructive", is_flag=True, help="Also what may lose stored values: drops, narrowed types.")
@click.option("--recorded", is_flag=True, help="Only write down that the stores have it already.")
@click.option("--take-over", is_flag=True, help="Take a store's lock from a console on another machine that is gone.")
def apply(
    phase: "Phase", stores: tuple[str, ...], dry_run: bool, allow_destructive: bool, recorded: bool, take_over: bool
) -> int:
    """Carry the committed migrations of one phase into the stores.

    Wave by wave; a wave that is not wholly through is the last one. Each store keeps what was applied to it: doing it
    twice, or again after a kill at any statement, ends the same. Without --yes it stops at each region's gate.
    """
    from console.runner.schema import Order

    work = Work.open(stores)
    voice = Voice(session().flags)
    order = Order(phase, allow_destructive, take_over, recorded)
    if dry_run:
        return work.preview(voice, order)
    return work.carry(voice, order)


class Work:
    """One call: the plan, the sites it is about, and the migrations."""

    def __init__(self, root: Path, plan: "Plan", sites: "Sequence[Site]", changes: "Sequence[Change]") -> None:
        self.root = root
        self.plan = plan
        self.sites = tuple(site for site in sites if not site.pipeline)
        self.owned = tuple(site for site in sites if site.pipeline)
        self.changes = tuple(changes)

    @classmethod
    def open(cls, stores: Sequence[str], *, migrations: bool = True) -> "Work":
        """raises Problems, UsageError for what is wrong in the files or on the command line"""
        from console.stores.files import concerning, read_changes, read_plan, sites

        flags = session().flags
        root = root_of(flags)
        plan = read_plan(root, flags.pipeline)
        regions = regions_of(root)
        changes = concerning(plan, read_changes(root, plan.pipeline)) if migrations else ()
        return cls(root, plan, sites(plan, regions, stores), changes)

    def carrier(self, site: "Site", store: "Store") -> "Carrier":
        from console.propagation.translate import translate
        from console.stores.carry import Carrier

        asker = who()
        kind = site.target.kind
        return Carrier(
            store,
            site.target,
            self.plan.replication,
            self.changes,
            lambda change, table: translate(kind, change.migration, table, change.id),
            by=asker.name,
            host=asker.host,
        )

    def preview(self, voice: Voice, order: "Order") -> int:
        """Print what is left, store by store."""
        from console.cli.commands.schema import landing
        from console.runner.exits import worst

        shown: list[tuple[Site, tuple[Todo, ...], ConsoleError | None]] = []
        for site in self.sites:
            store = site.open()
            try:
                shown.append((site, self.carrier(site, store).todo(order.phase), None))
            except ConsoleError as error:
                shown.append((site, (), error))
            finally:
                store.close()
        edits = landing.edits(self.root, self.plan, self.owned, self.changes, order)
        if voice.json:
            found = {"stores": [todo_data(*entry) for entry in shown], "edits": [landing.data(edit) for edit in edits]}
            voice.document({"phase": order.phase, **found})
        else:
            lines = [line for entry in shown for line in todo_text(*entry)]
            voice.data(
                "\n".join([*lines, *(line for edit in edits for line in landing.lines(edit))]) or "nothing to do"
            )
        for _, _, refusal in shown:
            if refusal is not None:
                voice.complain(refusal)
        return worst(refusal for _, _, refusal in shown)

    def carry(self, voice: Voice, order: "Order") -> int:
        """Apply, and tell what became of each store."""
        from console.cli.commands.schema import landing
        from console.runner.exits import worst
        from console.runner.journal import Journal
        from console.runner.schema import Carriage

        def told(site: "Site", done: "Done") -> None:
            voice.talk(f"{site.name}: {safe_text(done.change.id)}: {_did(done)}")

        edits = landing.edits(self.root, self.plan, self.owned, self.changes, order)
        journal = Journal()
        carriage = Carriage(
            self.plan.pipeline,
            journal,
            who(),
            carrier=self.carrier,
            gate=lambda site, todo: gate(voice, site, todo, order),
            told=told,
        )
        try:
            outcomes = list(carriage.run(self.sites, order))
        finally:
            journal.close()
        for edit in edits:
            landing.write(self.root, edit)
        if voice.json:
            found = {"stores": list(map(outcome_data, outcomes)), "edits": list(map(landing.data, edits))}
            voice.document({"phase": order.phase, **found})
        else:
            lines = [outcome_text(outcome) for outcome in outcomes]
            voice.data(
                "\n".join([*lines, *(line for edit in edits for line in landing.lines(edit))]) or "nothing to do"
            )
            if edits:
                voice.talk(
                    "the pipeline's files were edited: console plan shows what that means, console apply carries it"
                )
        for error in filter(None, (outcome.error for outcome in outcomes)):
            voice.complain(error)
        return worst(outcome.error for outcome in outcomes)


def regions_of(root: Path) -> "tuple[Region, ...]":
    """The selected regions, all where none is named."""
    from console.project import load

    return load(root).select(session().flags.regions or "all")


def gate(voice: Voice, site: "Site", todo: "Sequence[Todo]", order: "Order") -> ConsoleError | None:
    """Why a store's work waits for a person, or None: the region's own policy decides."""
    policy = site.region.policy.promote
    what = f"{len(todo)} migration{'s' if len(todo) != 1 else ''} in {site.name}"
    again = f"console schema apply --phase {order.phase} --store {site.target.name} --regions {site.region.name}"
    if policy == "auto" or (voice.flags.yes and policy != "never"):
        return None
    if not voice.may_ask:
        on = ", on a terminal" if policy == "never" else " --yes"
        return AtGate(f"{site.name}: {what} wait for a person", hint=again + on, code="E_GATE")
    for line in todo_text(site, todo, None):
        click.echo(line, err=True)
    typed = click.prompt(f"type {site.region.name} to apply", default="", show_default=False, err=True)
    if typed.strip() != site.region.name:
        return AtGate(f"{site.name}: not done, the name typed was another", hint=again, code="E_GATE")
    return None


def todo_text(site: "Site", todo: "Sequence[Todo]", error: ConsoleError | None) -> list[str]:
    """A store's statements, each after the sentence that says why."""
    if error is not None:
        return [f"{site.name}: {safe_text(str(error))}"]
    if not todo:
        return [f"{site.name}: nothing to do"]
    lines = [f"{site.name} ({site.target.kind})"]
    for one in todo:
        lines.append(f"  {safe_text(one.change.id)} → {safe_text(one.place)}" + _remark(one))
        lines += [f"    ! {safe_text(warning)}" for warning in one.warnings]
        for step in one.steps:
            lines += [f"    -- {safe_text(why(step))}", *(f"    {safe_text(line)}" for line in what(step).splitlines())]
    return lines


def _remark(one: "Todo") -> str:
    if one.announce:
        return ": announced to consumers, for new names come with the next migration of the database"
    return "" if one.steps else ": nothing left but to record it"


def todo_data(site: "Site", todo: "Sequence[Todo]", error: ConsoleError | None) -> dict[str, Any]:
    """For `--output json`."""
    migrations = [
        {
            "migration": one.change.id,
            "table": one.place,
            "destructive": one.change.migration.destructive,
            "statements": [what(step) for step in one.steps],
            "warnings": list(one.warnings),
        }
        for one in todo
    ]
    named = {"store": site.target.name, "region": site.region.name, "kind": site.target.kind}
    return {**named, "migrations": migrations, "error": as_data(error) if error else None}


def outcome_text(outcome: "SiteOutcome") -> str:
    """One line a store."""
    said = sum(done.operation is not None for done in outcome.done)
    closed = sum(done.operation is None and not done.announced for done in outcome.done)
    figures = f", {closed} migrations, {said} statements" if outcome.done else ""
    return f"{_SYMBOLS[outcome.state]} {outcome.site}: {outcome.state}{figures}"


def outcome_data(outcome: "SiteOutcome") -> dict[str, Any]:
    """For `--output json`."""
    region, _, store = outcome.site.partition("/")
    applied = [done.change.id for done in outcome.done if done.operation is None and not done.announced]
    announced = [done.change.id for done in outcome.done if done.announced]
    statements = [what(done.operation) for done in outcome.done if done.operation is not None]
    return {
        "store": store,
        "region": region,
        "state": outcome.state,
        "applied": applied,
        "announced": announced,
        "statements": statements,
        "error": as_data(outcome.error) if outcome.error else None,
    }


def what(operation: "StoreOperation") -> str:
    """An operation as a person reads it: SQL for ClickHouse, its words and values else."""
    from console.propagation.translate.operations import Statement

    if isinstance(operation, Statement):
        return operation.sql
    fields = [f"{name}={getattr(operation, name)!r}" for name in operation.__dataclass_fields__ if name != "why"]
    return f"{type(operation).__name__}({', '.join(fields)})"


def why(operation: "StoreOperation") -> str:
    """The sentence of an operation that has one."""
    return str(getattr(operation, "why", "")) or (type(operation).__doc__ or "").partition("\n")[0]


def _did(done: "Done") -> str:
    if done.announced:
        return "announced"
    return "applied" if done.operation is None else safe_text(" ".join(what(done.operation).split()))
