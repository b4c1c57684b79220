"""`console query`, `endpoint`, `copy` and `sink`: the read side of a region's live release."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import click

from console.cli.flags import command
from console.cli.format import count, table
from console.cli.interrupt import run_interruptible
from console.cli.output import FORMAT_VERSION, Output
from console.cli.wiring import OpenProject, choices, cli_context, open_project, who
from console.errors import Conflict, ConsoleError, DataError, RegionError, UsageError
from console.model.pipeline import Parameter
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.protocol import Driver, QueryResult
    from console.model.live import Release

_RUN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64, "long": 64}
_MOST = click.IntRange(1, 1_000_000)
_sandbox_option = click.option(
    "--release", default="", metavar="NAME", help="Of a preview, by its name, instead of the live release."
)


@command(
    "query",
    examples="""console query --region eu "SELECT day, count(*) AS n FROM requests GROUP BY day"
    console query --region eu --param day=2026-11-07 "SELECT * FROM requests WHERE day = :day" --output json""",
)
@click.argument("sql")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter's value; repeatable.")
@click.option("--limit", type=_MOST, default=1000, show_default=True, help="Maximum number of rows.")
@_sandbox_option
def query(sql: str, params: tuple[str, ...], limit: int, release: str) -> int:
    """Run a query over a region's live tables, or over a preview's.

    One SELECT over logical table names; checked before it is sent. `-` reads it from stdin.
    """
    text = sys.stdin.read() if sql == "-" else sql
    given = _given(params)
    declared = tuple(Parameter(name, guessed_type(value)) for name, value in given.items())
    project = open_project(one=True)
    return _ask(project, lambda _: (text, declared), given, limit, sandbox=release)


@command(
    "endpoint",
    examples="""console endpoint top_errors --region eu
    console endpoint top_errors --region eu --param day=2026-11-07 --record""",
)
@click.argument("name")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter's value; repeatable.")
@click.option("--limit", type=_MOST, default=1000, show_default=True, help="Maximum number of rows.")
@_sandbox_option
@click.option("--record", is_flag=True, help="Append the call to those that rollouts run at their gates.")
def endpoint(name: str, params: tuple[str, ...], limit: int, release: str, record: bool) -> int:
    """Call an endpoint of a region's live release, or of a preview.

    Parameters are checked against their declared types; those left out take their defaults. With --record the call is appended
    to endpoints/NAME.calls.yaml: rollouts run it against the live release and the new one.
    """
    project = open_project(one=True)

    def find(manifest: "Release") -> "tuple[str, tuple[Parameter, ...]]":
        known = {endpoint.name: endpoint for endpoint in manifest.endpoints}
        if name not in known:
            raise UsageError(f"release {manifest.id} has no endpoint {name!r}", **choices(list(known), name))
        return known[name].sql, known[name].parameters

    code = _ask(project, find, _given(params), limit, sandbox=release)
    if record:
        from console.cli.commands.record_call import record_call

        record_call(project, name, _given(params))
    return code


def _ask(
    project: OpenProject,
    find: "Callable[[Release], tuple[str, tuple[Parameter, ...]]]",
    given: dict[str, str],
    limit: int,
    *,
    sandbox: str,
) -> int:
    from console.planning import compile_query

    output = Output(cli_context().flags)
    region = project.names[0]

    async def work() -> "QueryResult":
        async with project.drivers() as drivers:
            release = await _release(project, drivers[region], sandbox)
            sql, parameters = find(release)
            args = typed(parameters, given)
            compiled = compile_query(sql, release, parameters)
            return await drivers[region].query(
                project.pipeline, compiled.sql, compiled.tables, args, limit, release=sandbox
            )

    _show(output, run_interruptible(work()), limit)
    return 0


async def _release(project: OpenProject, driver: "Driver", sandbox: str) -> "Release":
    """The release to read: the region's live one, or that of a preview."""
    if sandbox:
        return await driver.preview_release(project.pipeline, sandbox)
    region = driver.region.name
    live = await driver.survey(project.pipeline, project.landing(region))
    if live.release is None:
        raise _nothing_live(region)
    return live.release


def _nothing_live(region: str) -> RegionError:
    """Not a conflict with another console: there is nothing to read before the first release is live."""
    hint = f"console apply --regions {region}, then console promote --region {region}"
    return RegionError(f"{region}: nothing is live yet", region=region, hint=hint, code="E_NOTHING_LIVE")


def _given(params: Sequence[str]) -> dict[str, str]:
    """`day=2026-11-07` → day: 2026-11-07."""
    values: dict[str, str] = {}
    for param in params:
        name, equals, value = param.partition("=")
        if not equals or not name:
            raise UsageError(f"--param {param!r} is not NAME=VALUE", hint="--param day=2026-11-07")
        if name in values:
            raise UsageError(f"--param {name} is given twice", hint="give each parameter once")
        values[name] = value
    return values


def guessed_type(value: str) -> str:
    """The Spark type a bare value on the command line stands for; a string if no other type fits."""
    if value in ("true", "false"):
        return "boolean"
    for pattern, kind in ((_DAY, "date"), (_MOMENT, "timestamp")):
        if pattern.fullmatch(value) if kind == "date" else pattern.match(value):
            return kind if fits(value, kind) else "string"
    # 007 is a code and not a number
    if re.fullmatch(r"-?(0|[1-9]\d*)", value) and fits(value, "bigint"):
        return "bigint"
    return "double" if re.fullmatch(r"-?\d+\.\d+([eE][+-]?\d+)?", value) else "string"


def fits(value: str, kind: str) -> bool:
    """Whether this text is a value of this Spark type; types that cannot be written on a command line accept any text."""
    try:
        if kind in _INTEGERS:
            half = 1 << _INTEGERS[kind] - 1
            return re.fullmatch(r"[+-]?\d{1,20}", value) is not None and -half <= int(value) < half
        if kind in ("float", "double") or kind.startswith("decimal"):
            return Decimal(value).is_finite()
        if kind == "boolean":
            return value in ("true", "false")
        if kind == "date":
            return _DAY.fullmatch(value) is not None and bool(date.fromisoformat(value))
        if kind.startswith("timestamp"):
            return bool(datetime.fromisoformat(value))
    except (ValueError, InvalidOperation):
        return False
    return "\0" not in value


def typed(parameters: "Sequence[Parameter]", given: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Name → (value as text, Spark type), defaults filled in.

    raises  UsageError for an unknown or missing parameter, or a value that does not match its type
    """
    declared = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in declared:
            raise UsageError(f"no parameter {name!r}", **choices(list(declared), name))
    args = {}
    for name, parameter in declared.items():
        value = given.get(name, parameter.default)
        if value is None:
            raise UsageError(f"parameter {name} ({parameter.type}) is missing", hint=f"--param {name}=…")
        if not fits(value, parameter.type):
            raise UsageError(
                f"parameter {name}: {value!r:.80} is not of type {parameter.type}", hint=_example(parameter.type)
            )
        args[name] = (value, parameter.type)
    return args


def _example(kind: str) -> str:
    examples = {"date": "2026-11-07", "boolean": "true or false", "int": "10", "bigint": "10", "double": "0.5"}
    return f"for example {examples.get(kind, '2026-11-07T13:00:00' if kind.startswith('timestamp') else '10')}"


def _show(output: Output, answer: "QueryResult", limit: int) -> None:
    names = [name for name, _ in answer.columns]
    rows = [dict(zip(names, row, strict=True)) for row in answer.rows]
    if output.flags.output == "jsonl":
        for row in rows:
            output.data(json.dumps(row, ensure_ascii=True))
    elif output.json:
        columns = [{"name": name, "type": kind} for name, kind in answer.columns]
        document = {"columns": columns, "rows": rows, "release": answer.release, "truncated": answer.truncated}
        output.data(json.dumps({"format_version": FORMAT_VERSION, **document}, ensure_ascii=True))
    else:
        output.data(answer_text(answer))
    output.detail(f"release {answer.release}")
    if answer.truncated:
        output.info(f"only the first {limit:,} rows; --limit shows more")


def answer_text(answer: "QueryResult") -> str:
    """Rows as an aligned table; figures flush right, NULL written out."""
    heads = [safe_text(name) for name, _ in answer.columns]
    rows = [[_cell(value) for value in row] for row in answer.rows]
    numeric = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
    right = [i for i, (_, kind) in enumerate(answer.columns) if kind.startswith(numeric)]
    return f"{table(heads, rows, right=right)}\n({count(len(rows), 'row')})"


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return safe_text(value, 200)
    return safe_text(json.dumps(value, ensure_ascii=False), 200)


@command("copy", changes=True, examples="console copy daily_totals --region eu")
@click.argument("name")
@click.option("--run", metavar="ID", help="Repeat a run whose answer was lost: its rows are inserted once.")
@_sandbox_option
def copy(name: str, run: str | None, release: str) -> int:
    """Run a copy of a region's live release, or of a preview, into which it then writes.

    Every run has an id, which its commit records. A script that may be killed and repeated passes its own with --run.
    """
    if run is not None and not _RUN.fullmatch(run):
        raise UsageError(
            f"{run!r:.60} is not a valid id for a run", hint="letters, digits, '.', '_' and '-', at most 64"
        )
    return _run("copy", name, run or uuid4().hex[:16], sandbox=release)


@command("sink", changes=True, examples="console sink errors_export --region eu")
@click.argument("name")
def sink(name: str) -> int:
    """Run an export of a region's live release."""
    return _run("sink", name)


def _run(kind: Literal["copy", "sink"], name: str, run: str = "", *, sandbox: str = "") -> int:
    project = open_project(one=True)
    output = Output(cli_context().flags)
    region = project.names[0]

    async def work() -> dict[str, object]:
        async with project.drivers() as drivers:
            release = await _release(project, drivers[region], sandbox)
            known = [node.name for node in (release.copies if kind == "copy" else release.sinks)]
            if name not in known:
                raise UsageError(f"release {release.id} has no {kind} {name!r}", **choices(known, name))
            with _asked_again(again):
                return await drivers[region].run(project.pipeline, kind, name, who(), run, release=sandbox)

    of = f" --release {sandbox}" if sandbox else ""
    again = f"console copy {name} --region {region} --run {run}{of}" if run else ""
    result = run_interruptible(work(), lambda: f"its rows may still be inserted:  {again}" if again else "")
    if output.json:
        output.document({"region": region, kind: name, **({"run": run} if run else {}), **result})
    elif result.get("already"):
        output.data(f"{name}: run {run} is there already, nothing added")
    else:
        rows = result.get("rows", 0)
        output.data(
            f"{name}: {count(rows if isinstance(rows, int) else 0, 'row')} → {safe_text(str(result.get('path', '')))}"
        )
    return 0


@contextmanager
def _asked_again(again: str) -> Iterator[None]:
    """If an error leaves it unknown whether the rows were written, add the command that finds out."""
    try:
        yield
    except (DataError, UsageError, Conflict):
        raise  # refused before anything was written
    except ConsoleError as error:
        if again:
            error.hint = "; ".join(filter(None, (f"its rows are inserted once: {again}", error.hint)))
        raise
