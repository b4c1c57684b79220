"""`console schema verify`."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.commands.schema.apply import ApplyCall
from console.cli.commands.schema.destination import describe
from console.cli.commands.schema.migration_files import write
from console.cli.commands.schema.observe import read_files
from console.cli.flags import command
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.errors import ConsoleError, UsageError
from console.propagation.check import render
from console.propagation.check.compare import Report, Unreached, compare
from console.propagation.observe.read import read_schema
from console.stores.files import dsn_of, source_of
from console.stores.source.postgres import Postgres
from console.text import safe_text

if TYPE_CHECKING:
    from console.propagation.check.compare import TableCheck
    from console.propagation.tables import PgTable
    from console.stores.files import Site

_AT_ONCE = 8


@command(
    "verify",
    examples="""console schema verify
    console schema verify --store clickhouse --junit verify.xml
    console schema verify --schema db/structure.sql --output json""",
)
@click.option(
    "--store", "stores", multiple=True, metavar="NAME", help="Only this store; may be repeated. Default: all."
)
@click.option("--dsn", metavar="DSN", help="PostgreSQL's address, instead of replication.yaml's source.")
@click.option(
    "--schema", "dumps", multiple=True, metavar="FILE", help="Dumps of the schema, instead of a running PostgreSQL."
)
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a JUnit report as well."
)
@click.option("--write", is_flag=True, help="Write the migrations that fix the differences, ready to commit.")
@click.option("--notes", is_flag=True, help="Also show where a store is looser than PostgreSQL.")
def verify(
    stores: tuple[str, ...], dsn: str | None, dumps: tuple[str, ...], junit: Path | None, write: bool, notes: bool
) -> int:
    """Compare the replicated PostgreSQL tables with every store.

    Compares columns, types, nullability and keys, and shows with each difference the migration that fixes it. Exits 0
    if nothing differs, 1 if something does, 5 if a store or PostgreSQL does not answer.
    """
    if dsn and dumps:
        raise UsageError("--dsn and --schema are two sources", hint="give only one of them")
    work = ApplyCall.open(stores, migrations=False)
    report = _report(work, dsn, dumps)
    output = Output(cli_context().flags)
    if output.json:
        output.document(render.data(report))
    else:
        output.data(render.text(report, notes=notes))
    if junit is not None:
        try:
            junit.write_text(render.junit(report))
        except OSError as error:
            raise UsageError(f"{junit} cannot be written: {error.strerror}") from None
    if write:
        _write(output, work, report)
    for store in report.unreached:
        output.print_error(_error(store))
    return report.exit_code


def _report(work: ApplyCall, dsn: str | None, dumps: Sequence[str]) -> "Report":
    tables = _sources(work, dsn, dumps)
    checked: list[TableCheck] = []
    unreached = [result for result in tables.values() if not isinstance(result, tuple)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sites = [site for site in (*work.sites, *work.owned) if isinstance(tables[site.region.name], tuple)]
        for result in pool.map(lambda site: _site(work, site, tables[site.region.name]), sites):
            if isinstance(result, tuple):
                checked += result
            else:
                unreached.append(result)
    return Report(tuple(checked), tuple(dict.fromkeys(unreached)))


def _site(
    work: ApplyCall, site: "Site", tables: "Sequence[PgTable] | Unreached"
) -> "tuple[TableCheck, ...] | Unreached":
    assert isinstance(tables, tuple)
    store = site.open()
    replication = work.plan.replication
    try:
        result = store.describe([site.target.place(table) for table in replication.tables])
    except ConsoleError as error:
        return Unreached(site.name, str(error), error.hint)
    finally:
        store.close()
    return compare(tables, replication, site.target, result, site.name)


def _sources(work: ApplyCall, dsn: str | None, dumps: Sequence[str]) -> "Mapping[str, tuple[PgTable, ...] | Unreached]":
    """Region → PostgreSQL's tables; each address is asked once."""
    schema, regions = (
        work.plan.replication.schema,
        {site.region.name: site.region for site in (*work.sites, *work.owned)},
    )
    if dumps:
        return dict.fromkeys(regions, read_schema(read_files(dumps), schema))
    result: dict[str, tuple[PgTable, ...] | Unreached] = {}
    by_address: dict[str, tuple[PgTable, ...] | Unreached] = {}
    for name, region in regions.items():
        address = dsn_of(dsn) if dsn else source_of(work.plan, region)
        if not address:
            hint = 'add source: {url: "env:DATABASE_URL"}, or give --dsn or --schema'
            raise UsageError(f"{work.plan.file} does not say where PostgreSQL is", hint=hint)
        if address not in by_address:
            by_address[address] = _running(work, f"{name}/postgresql", address)
        result[name] = by_address[address]
    return result


def _running(work: ApplyCall, name: str, address: str) -> "tuple[PgTable, ...] | Unreached":
    wanted = [f"{table.schema}.{table.table}" for table in work.plan.replication.tables]
    try:
        statements = Postgres(name, address).statements(wanted)
    except ConsoleError as error:
        return Unreached(name, str(error), error.hint)
    return read_schema([(name, statements)], work.plan.replication.schema)


def _write(output: Output, work: ApplyCall, report: "Report") -> None:
    fixes = [difference.fix for checked in report.checked for difference in checked.wrong if difference.fix is not None]
    folder = work.root / "plans" / work.plan.pipeline / "migrations"
    for migration, path, there in write(folder, list(dict.fromkeys(fixes))):
        output.info(
            f"{'.' if there else '+'} {safe_text(path.relative_to(work.root).as_posix())}  {describe(migration)}"
        )


def _error(store: "Unreached") -> ConsoleError:
    return ConsoleError(f"{store.store}: no answer: {store.message}", hint=store.hint)
