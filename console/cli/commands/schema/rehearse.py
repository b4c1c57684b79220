"""`console schema rehearse`."""

from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.schema.apply import ApplyCall
from console.cli.flags import command
from console.cli.format import count
from console.cli.output import Output, as_data
from console.cli.wiring import choices, cli_context
from console.errors import ConsoleError, UsageError
from console.propagation.translate.describe import what, why
from console.runner.exit_codes import worst
from console.text import safe_text

if TYPE_CHECKING:
    from console.stores.files import MigrationFile, Site
    from console.stores.rehearse import Rehearsed

Tried = tuple["Site", "MigrationFile", "Rehearsed | None", "ConsoleError | None"]


@command(
    "rehearse",
    changes=True,
    examples="""console schema rehearse 20260102030405_add_issues_title
    console schema rehearse --phase post --store clickhouse""",
)
@click.argument("migrations", nargs=-1, metavar="[MIGRATION]…")
@click.option("--phase", type=click.Choice(["pre", "post"]), help="Only migrations of this phase.")
@click.option(
    "--store", "stores", multiple=True, metavar="NAME", help="Only this store; may be repeated. Default: all."
)
def rehearse(migrations: tuple[str, ...], phase: str | None, stores: tuple[str, ...]) -> int:
    """Try migrations on a copy of each store's newest partition.

    Each MIGRATION (a file's name; default: all) is applied to a copy of its own, with copies of the views on it; the
    copy is dropped afterwards and the table itself is not touched. Exits 1 if a store refuses, or rows are missing.
    """
    work = ApplyCall.open(stores)
    known = {change.id: change for change in work.changes}
    for name in migrations:
        if name.removesuffix(".json") not in known:
            raise UsageError(f"no migration is named {name}", **choices(list(known), name))
    named = [known[name.removesuffix(".json")] for name in migrations] or list(known.values())
    chosen = [change for change in named if phase in (None, change.migration.phase)]
    tried = [_try(work, site, change) for site in work.sites for change in chosen]
    output = Output(cli_context().flags)
    if output.json:
        output.document({"rehearsals": [_data(entry) for entry in tried]})
    else:
        output.data("\n".join(line for entry in tried for line in _text(entry)) or "nothing to rehearse")
    for site, change, _, error in tried:
        if error is not None:
            output.print_error(error, f"{site.name}: {change.id}: ")
    return worst(error for _, _, _, error in tried)


def _try(work: ApplyCall, site: "Site", change: "MigrationFile") -> Tried:
    from console.stores.rehearse import rehearse as on_a_copy

    store = site.open()
    try:
        runner = work.runner(site, store)
        return site, change, on_a_copy(store, runner.existing(change), change, runner.translate), None
    except ConsoleError as error:
        return site, change, None, error
    finally:
        store.close()


def _text(entry: Tried) -> list[str]:
    site, change, done, error = entry
    lead = f"{site.name}: {safe_text(change.id)}"
    if done is None:
        return [f"! {lead}: {safe_text(str(error))}"]
    figures = f"{count(len(done.steps), 'statement')} on {count(done.rows_after, 'row')} in {done.seconds:.1f} s"
    lines = [f"+ {lead}: {figures}", *(f"    ! {safe_text(warning)}" for warning in done.warnings)]
    return lines + [f"    {safe_text(why(step))}: {safe_text(' '.join(what(step).split()))}" for step in done.steps]


def _data(entry: Tried) -> dict[str, Any]:
    site, change, done, error = entry
    named = {"region": site.region.name, "store": site.target.name, "migration": change.id}
    if done is None:
        return {**named, "error": as_data(error) if error else None}
    figures = {"rows_before": done.rows_before, "rows_after": done.rows_after, "seconds": round(done.seconds, 3)}
    return {
        **named,
        "statements": [what(step) for step in done.steps],
        "warnings": list(done.warnings),
        **figures,
        "error": None,
    }
