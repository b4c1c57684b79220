"""`console profile`: the keys of a landing table's JSON, since when they appear, and which ones no query parses."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from console.cli.flags import command
from console.cli.format import count, size, table
from console.cli.output import Output
from console.cli.wiring import choices, cli_context, open_project
from console.drivers.store_secrets import of_region
from console.drivers.survey import Sample, profiled, raw_profile
from console.errors import UsageError
from console.model.pipeline import Pipeline
from console.model.schema import Table
from console.model.share import percent_shown
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.survey import Profile
    from console.model.region import Region


@command(
    "profile",
    examples="""console profile landing --region eu
    console profile landing --column payload --unparsed
    console profile landing --budget-mb 2000 --output json""",
)
@click.argument("name", metavar="TABLE")
@click.option("--column", metavar="NAME", help="The column with the JSON text (default: the only one with JSON).")
@click.option("--unparsed", is_flag=True, help="Only keys that no query reads.")
@click.option("--budget-mb", type=click.IntRange(1), default=256, show_default=True, help="Megabytes to read at most.")
@click.option(
    "--budget-seconds", type=click.FloatRange(1), default=30.0, show_default=True, help="Seconds to take at most."
)
def profile(name: str, column: str | None, unparsed: bool, budget_mb: int, budget_seconds: float) -> int:
    """List the keys that a landing table's JSON column carries: share of the rows, first seen, read by which query.

    Reads a sample of the data files, day by day, then searches for the day on which each later key first appeared; a
    day that the budget left uncertain is marked `or before`. Starts no Spark.
    """
    project = open_project(one=True)
    output = Output(cli_context().flags)
    pipeline = project.pipelines[project.names[0]]
    landing = _landing(pipeline, name)
    column = column or _column(landing)
    sample = Sample(table=name, column=column, time=landing.time, bytes=budget_mb * 1_000_000, seconds=budget_seconds)
    profile = asdict(asyncio.run(_profile(project.regions[0], sample)))
    profile["keys"] = _with_readers(pipeline, name, profile["keys"])
    shown = [key for key in profile["keys"] if not unparsed or not key["parsed_by"]]
    if output.json:
        output.document({"region": project.names[0], "table": name, "column": column, **profile, "keys": shown})
        return 0
    output.data(_text(shown))
    whole = "all of it" if profile["files_whole"] == profile["files"] else f"{count(profile['sampled'], 'row')} sampled"
    odd = "".join(
        f", {profile[k]:,} {word}" for k, word in (("null", "NULL"), ("not_json", "no JSON object")) if profile[k]
    )
    output.info(
        f"{name}.{column} in {project.names[0]}: {count(profile['rows'], 'row')} of {profile['first_day']} … {profile['last_day']}; "
        f"{whole}{odd}; {size(profile['bytes_read'])} read"
    )
    return 0


def _landing(pipeline: Pipeline, name: str) -> Table:
    known = {table.name: table for table in pipeline.tables if table.kind == "landing"}
    if name not in known:
        raise UsageError(f"no landing table is named {name!r:.60}", **choices(list(known), name))
    return known[name]


def _column(landing: Table) -> str:
    texts = [column.name for column in landing.columns if column.type == "string"]
    usual = [
        name
        for name in texts
        if name.lower() in ("payload", "body", "data", "json", "event", "raw", "value", "message")
    ]
    if len(usual) == 1 or len(texts) == 1:
        return (usual or texts)[0]
    raise UsageError(f"{landing.name} has several text columns", hint=f"--column, one of: {', '.join(texts) or 'none'}")


async def _profile(region: "Region", sample: "Sample") -> "Profile":
    """Computed near the files: by a process on this machine, or on the region's host."""
    if region.transport is None:
        return profiled(region.name, await raw_profile(region.warehouse, sample, of_region(region)))
    from console.drivers.ssh.driver import SshDriver

    driver = SshDriver(region)
    try:
        return await driver.profile(sample)
    finally:
        await driver.close()


def _with_readers(pipeline: Pipeline, name: str, keys: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from console.planning.review.keys import parsed_keys, readers

    parsed = parsed_keys(pipeline, name)
    return [{**key, "parsed_by": list(readers(key["key"], parsed))} for key in keys]


def _text(keys: list[dict[str, Any]]) -> str:
    rows = [
        [
            safe_text(key["key"], 80),
            f"{percent_shown(key['share'], 1):.1f}%",
            (key["first_seen"] or "unknown") + ("" if key["sure"] else " or before"),
            safe_text(", ".join(key["parsed_by"])) or "nobody",
        ]
        for key in keys
    ]
    return table(["key", "rows", "first seen", "parsed by"], rows, right=(1,)) if rows else "no such key"
