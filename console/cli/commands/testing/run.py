"""`console test`: rows into a pipeline's queries, compared with the expected results."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.flags import command, root_of
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import cli_context, open_project
from console.errors import Problems, UsageError
from console.project import load
from console.text import hide, safe_text

if TYPE_CHECKING:
    from console.drivers.replay import Replayer
    from console.model.live import Release
    from console.model.pipeline import Pipeline
    from console.model.region import Region
    from console.project import Project


@dataclass(frozen=True, slots=True)
class TestedPipeline:
    """A pipeline as declared or, with a region, as desired there. files: all of the project"""

    files: "Project"
    pipeline: "Pipeline"
    region: "Region | None"

    @property
    def folder(self) -> Path:
        return self.files.root / "plans" / self.pipeline.name

    @property
    def conf(self) -> dict[str, str]:
        return dict(self.region.spark.conf) if self.region else {}


def tested_pipeline() -> TestedPipeline:
    """The pipeline that the flags name; with `--region` its overrides and its Spark settings too.

    raises  Problems, UsageError
    """
    flags = cli_context().flags
    project = load(root_of(flags))
    for region in project.regions:
        hide(region.spark.conf)
    regions = project.select(flags.regions) if flags.regions else ()
    if len(regions) > 1:
        raise UsageError(f"test takes one region, not {len(regions)}", hint="--region, or none for the pipeline alone")
    chosen = regions[0] if regions else None
    return TestedPipeline(project, project.pipeline(flags.pipeline, chosen), chosen)


def previewed_pipeline(name: str) -> TestedPipeline:
    """The pipeline as declared by the files of a region's preview; the tests are the current ones.

    raises  errors of the project, the region and its preview
    """
    from console.cli.commands.testing.released import released

    if not cli_context().flags.regions:
        raise UsageError("--release names a preview in a region", hint="add --region NAME")
    project = open_project(one=True)
    region = project.regions[0]

    async def manifest() -> "Release":
        async with project.drivers() as drivers:
            return await drivers[region.name].preview_release(project.pipeline, name)

    sources = run_interruptible(manifest()).sources
    return TestedPipeline(project.files, released(project.files, project.pipeline, region, sources), region)


@command(
    "test",
    examples="""console test
    console test parse_requests --output json
    console test --region ap
    console test --region us --release fix-cast
    console test --watch
    console test --create parse_requests --from us --rows 5 --plain payload.status""",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--release", default="", metavar="NAME", help="Test the files of a region's preview; needs --region.")
@click.option("--watch", is_flag=True, help="Run them again after each change of the pipeline's files, until Ctrl-C.")
@click.option(
    "--create", metavar="NODE", help="Write a test of a materialization or query, from live rows; needs --from."
)
@click.option("--from", "source", metavar="REGION", help="With --create: the region whose newest rows are taken.")
@click.option("--rows", type=click.IntRange(1, 100), default=5, show_default=True, help="With --create: of each table.")
@click.option(
    "--plain", multiple=True, metavar="COLUMN", help="With --create: leave it, or a key of its JSON, unmasked."
)
@click.option("--masked", is_flag=True, help="With --create: mask all strings; required for production regions.")
def test(
    names: tuple[str, ...],
    *,
    release: str,
    watch: bool,
    create: str | None,
    source: str | None,
    rows: int,
    plain: tuple[str, ...],
    masked: bool,
) -> int:
    """Run the fixture tests of a pipeline: rows in, rows out.

    The files are plans/PIPELINE/tests/*.yaml: rows that go into tables, and what tables and queries should hold then.
    They run on a Spark that is started here and reads no warehouse; no region is contacted. With --region, that
    region's overrides and Spark settings apply; with --release, the tables and queries are those of a preview there, and
    the tests are the project's. Exits 1 if a test fails.
    """
    from console.drivers.replay import Replayer

    if release and (watch or create is not None):
        raise UsageError("--release tests a preview, whose files stay as they are", hint="without --watch and --create")
    if create is not None:
        return _create(names, create, source, rows=rows, plain=plain, masked=masked, watch=watch)
    if source or plain or masked:
        raise UsageError(
            "--from, --plain and --masked belong to --create", hint="console test --create NODE --from REGION"
        )
    tested = previewed_pipeline(release) if release else tested_pipeline()
    with Replayer(tested.conf) as spark:
        return _watch(tested, names, spark) if watch else run_tests(tested, names, spark)


def _create(
    names: tuple[str, ...],
    node: str,
    source: str | None,
    *,
    rows: int,
    plain: tuple[str, ...],
    masked: bool,
    watch: bool,
) -> int:
    from console.cli.commands.testing.create import SampleChoice, create

    if names or watch:
        raise UsageError("--create writes one test and runs none", hint=f"then: console test {node}")
    if not source:
        raise UsageError("--create takes its rows from a region", hint="--from REGION")
    tested = tested_pipeline()
    choice = SampleChoice(node=node, region=source, rows=rows, plain=plain, masked=masked)
    return create(tested.files, tested.pipeline, choice)


def _watch(tested: TestedPipeline, names: Sequence[str], spark: "Replayer") -> int:
    """Until Ctrl-C. Problems of the files are printed, and the watch continues."""
    from console.cli.commands.testing.watching import changes, stamps

    output = Output(cli_context().flags)
    for _ in changes(lambda: stamps(tested.folder)):
        try:
            run_tests(tested_pipeline(), names, spark, stream=True)
        except (Problems, UsageError) as error:
            output.error(error, stream=True)
        output.info("waiting for a change; Ctrl-C ends it")
    return 0


def run_tests(tested: TestedPipeline, names: Sequence[str], spark: "Replayer", *, stream: bool = False) -> int:
    """Read, check and run the tests, and print the results.

    stream   others follow: JSON is one line
    returns  the exit code
    raises  Problems for invalid files; errors of the replayer
    """
    from console.cli.commands.testing.text import result_text, results_data, summary_text
    from console.fixtures.run import FixtureRunner
    from console.planning import PlannerCache
    from console.project import recent
    from console.project.fixtures import read_fixtures

    output = Output(cli_context().flags)
    fixtures = read_fixtures(tested.files.root, tested.pipeline.name, names)
    results = []
    if fixtures:
        runner = FixtureRunner(tested.pipeline, fixtures, PlannerCache(recent.opened()))
        if not spark.started:
            output.info("starting Spark …")
        for result in runner.run(spark):
            results.append(result)
            if not output.json:
                output.data(result_text(result, output.paint))
    if output.json:
        region = tested.region.name if tested.region else ""
        data = results_data(tested.pipeline.name, region, results)
        output.line(data) if stream else output.document(data)
    elif results:
        output.data(summary_text(results, output.paint))
    else:
        output.info(f"no tests in plans/{safe_text(tested.pipeline.name)}/tests: docs/testing.md says how to write one")
    return 0 if all(result.passed for result in results) else 1
