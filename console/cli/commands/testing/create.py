"""`console test --create`: a fixture test from rows of a region."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.errors import DataError, RegionError, UsageError
from console.fixtures.create import NewFixture, SampledTable, fixture_text, new_fixture
from console.fixtures.masking import Masking
from console.project import Project
from console.project.fixtures import fixtures_folder
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.live import Live, Release
    from console.model.pipeline import Pipeline
    from console.model.region import Region

PRODUCTION = ("prod", "production")  # values of `environment`, case-insensitive


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleChoice:
    """The source of the sample, and the columns that are written unmasked.

    region  its name;  rows  at most, of each table
    plain   columns, and keys of JSON (`payload.status`);  masked  requested explicitly: no others
    """

    node: str
    region: str
    rows: int
    plain: tuple[str, ...]
    masked: bool


def create(files: Project, pipeline: "Pipeline", choice: SampleChoice) -> int:
    """Write the file; an existing file is left alone.

    raises  UsageError, Problems; errors of the region and of the replayer
    """
    from console.drivers.replay import Replayer

    region = files.region(choice.region)
    _refuse_unmasked(region, choice)
    new = new_fixture(pipeline, choice.node)
    path = fixtures_folder(files.root, pipeline.name) / f"{new.name}.yaml"
    shown = path.relative_to(files.root).as_posix()
    if os.path.lexists(path):
        raise UsageError(f"{shown} is there already", hint="rename it, or remove it")
    _refuse_unknown(choice.plain, pipeline, new)
    sampled = _sampled(region, pipeline, new, choice.rows)
    plain = f"all strings masked but {', '.join(choice.plain)}" if choice.plain else "all strings masked"
    note = safe_text(
        f"From {region.name}, {plain}. The expected rows are results of the current queries: review them before you keep them."
    )
    with Replayer(dict(region.spark.conf)) as spark:
        text = fixture_text(
            new, pipeline, tuple(sampled.values()), Masking(choice.plain), at=datetime.now(UTC), note=note, spark=spark
        )
    _write(path, text)
    output = Output(cli_context().flags)
    counts = {name: len(table.rows) for name, table in sampled.items()}
    if output.json:
        output.document({"file": shown, "region": region.name, "rows": counts, "plain": list(choice.plain)})
    else:
        output.data(shown)
        output.info(
            f"{', '.join(f'{rows} of {name}' for name, rows in counts.items())}; run it: console test {new.name}"
        )
    return 0


def _refuse_unmasked(region: "Region", choice: SampleChoice) -> None:
    """raises  UsageError if the region is production and neither --plain nor --masked was given"""
    if region.environment.lower() in PRODUCTION and not (choice.plain or choice.masked):
        message = f"{region.name} is {region.environment}: choose the values that may be written to a file"
        raise UsageError(message, hint="--masked masks every string; --plain COLUMN leaves one as it is")


def _refuse_unknown(plain: tuple[str, ...], pipeline: "Pipeline", new: NewFixture) -> None:
    """raises  UsageError if a column for --plain does not exist"""
    columns = {column.name for table in pipeline.tables if table.name in new.sources for column in table.columns}
    for name in plain:
        if name not in columns and name.partition(".")[0] not in columns:
            known = ", ".join(sorted(columns))
            raise UsageError(
                f"--plain {name!r:.80} is not a column of {', '.join(new.sources)}", hint=f"there are: {known}"
            )


def _sampled(region: "Region", pipeline: "Pipeline", new: NewFixture, rows: int) -> dict[str, SampledTable]:
    async def work() -> dict[str, SampledTable]:
        driver = cli_context().wiring.drivers([region])[region.name]
        try:
            landing = [table.name for table in pipeline.tables if table.kind == "landing"]
            live = await driver.survey(pipeline.name, landing)
            if live.release is None:
                hint = f"console apply --regions {region.name}"
                raise RegionError(
                    f"{region.name}: nothing is live yet", region=region.name, hint=hint, code="E_NOTHING_LIVE"
                )
            sampled = {}
            for name in new.sources:
                sql, tables, columns = _query(name, pipeline, live, live.release)
                answer = await driver.query(pipeline.name, sql, tables, {}, rows)
                kinds = tuple((column, columns[column]) for column, _ in answer.columns)
                sampled[name] = SampledTable(name, kinds, tuple(tuple(row) for row in answer.rows))
            return sampled
        finally:
            await driver.close()

    return run_interruptible(work())


def _query(
    table: str, pipeline: "Pipeline", live: "Live", release: "Release"
) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """SQL, the tables that it reads, and the declared types of its columns: those that both the region and the files have."""
    from console.planning import compile_query
    from console.planning.fixtures import newest_rows

    declared, state = pipeline.table(table), release.table(table)
    if declared is None or state is None:
        raise DataError(f"{live.region}: release {release.id} has no table {table}", hint="console status")
    there = {column.name for column in state.table.columns}
    columns = {column.name: column.type for column in declared.columns if column.name in there}
    stats = live.table(table)
    day = max((day.day for day in stats.days if day.rows), default="") if stats else ""
    time = declared.time if declared.time in columns else ""
    compiled = compile_query(newest_rows(table, tuple(columns), time, day), release)
    return compiled.sql, compiled.tables, columns


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
