"""Every key of the files is used by some code, or a warning tells its author that it has no effect."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import FILES, Write

from console.errors import Problem
from console.model.codec import encode
from console.project import documents as docs
from console.project import load
from console.project.ineffective import UNREAD
from console.project.pipeline.calls import CallsDoc
from console.project.yaml import Keys

HOUSE = Path(__file__).parents[2] / "console"
FILE_KINDS = (
    docs.RegionDoc,
    docs.PipelineDoc,
    docs.TableDoc,
    docs.MaterializationDoc,
    docs.EndpointDoc,
    docs.CopyDoc,
    docs.SinkDoc,
    docs.FixtureDoc,
    CallsDoc,
)
TEXTS = ("description", "owner", "comment")  # docs/files.md: for whoever reads the file
READERS = {
    "RegionDoc.warehouse": "cli/commands/ingest.py: region.warehouse",
    "RegionDoc.name": "project/regions.py: doc.name",
    "RegionDoc.environment": "tui/fleet/question.py: view.region.environment",
    "RegionDoc.owner": "tui/fleet/regions.py: region.owner",
    "RegionDoc.zone": "tui/panes/summary.py: view.region.zone",
    "RegionDoc.wave": "runner/waves.py: region.wave",
    "RegionDoc.canary": "runner/waves.py: region.canary",
    "RegionDoc.transport.ssh.host": "drivers/ssh/connection.py: self._ssh.host",
    "RegionDoc.transport.ssh.port": "drivers/ssh/connection.py: self._ssh.port",
    "RegionDoc.transport.ssh.user": "drivers/ssh/connection.py: self._ssh.user",
    "RegionDoc.transport.ssh.key": "drivers/ssh/connection.py: self._ssh.key",
    "RegionDoc.transport.ssh.known_hosts": "drivers/ssh/connection.py: self._ssh.known_hosts",
    "RegionDoc.transport.ssh.jump": "drivers/ssh/connection.py: self._ssh.jump",
    "RegionDoc.transport.ssh.bootstrap": "drivers/ssh/driver.py: region.transport.bootstrap",
    "RegionDoc.secrets": "drivers/store_secrets.py: region.secrets",
    "RegionDoc.spark.master": "drivers/local.py: region.spark.master",
    "RegionDoc.spark.remote": "drivers/local.py: region.spark.remote",
    "RegionDoc.spark.defaults": "drivers/local.py: region.spark.defaults",
    "RegionDoc.spark.conf": "drivers/local.py: region.spark.conf",
    "RegionDoc.limits.rows": "planning/derived/plan.py: region.limits.rows",
    "RegionDoc.limits.bytes": "planning/derived/plan.py: region.limits.bytes",
    "RegionDoc.limits.target_seconds": "planning/derived/plan.py: region.limits.target_seconds",
    "RegionDoc.throttle.lag": "agent/resilience/throttle.py: self.context.limits.throttle.lag_seconds",
    "RegionDoc.throttle.hours": "agent/resilience/throttle.py: throttle.hours",
    "RegionDoc.throttle.query": "agent/resilience/throttle.py: throttle.query",
    "RegionDoc.follow.share": "agent/feeds/pacing.py: self.follow.share",
    "RegionDoc.follow.lag": "agent/feeds/pacing.py: self.follow.lag_seconds",
    "RegionDoc.follow.idle": "agent/sleeper.py: self.follow.idle_seconds",
    "RegionDoc.policy.promote": "runner/actions.py: view.region.policy.promote",
    "RegionDoc.policy.min_soak": "planning/derived/plan.py: policy.min_soak_seconds",
    "RegionDoc.policy.soak.clean_intervals": "planning/derived/plan.py: policy.clean_intervals",
    "RegionDoc.policy.watch": "planning/derived/plan.py: policy.watch_seconds",
    "RegionDoc.policy.on_breach": "planning/derived/plan.py: policy.on_breach",
    "RegionDoc.policy.watch_query": "planning/review/watch_query.py: region.policy.watch_query",
    "RegionDoc.policy.approvals": "planning/derived/plan.py: policy.approvals",
    "RegionDoc.policy.ticket": "planning/derived/plan.py: policy.ticket",
    "RegionDoc.policy.quarantine_rows": "planning/review/retention.py: region.policy.quarantine_rows",
    "RegionDoc.policy.on_failure": "runner/region_run.py: self._board[name].region.policy.on_failure",
    "RegionDoc.policy.keep_failed": "drivers/local.py: region.policy.keep_failed_hours",
    "RegionDoc.policy.rollback_window": "drivers/local.py: region.policy.rollback_window_hours",
    "RegionDoc.policy.preview_expires": "cli/commands/preview.py: project.regions[0].policy.preview_expires_hours",
    "RegionDoc.prices.core_hour": "planning/review/cost.py: prices.core_hour",
    "RegionDoc.prices.tb_read": "planning/review/cost.py: prices.tb_read",
    "RegionDoc.prices.tb_month": "planning/review/cost.py: prices.tb_month",
    "RegionDoc.prices.currency": "planning/review/cost.py: region.prices.currency",
    "RegionDoc.overrides.tables": "project/pipeline/desired.py: differs.tables",
    "RegionDoc.overrides.variables": "project/pipeline/desired.py: differs.variables",
    "PipelineDoc.name": "project/pipeline/build.py: head.name",
    "PipelineDoc.variables": "planning/resolve.py: pipeline.variables",
    "TableDoc.columns.type": "planning/diff.py: column.type",
    "TableDoc.columns.nullable": "planning/rules.py: column.nullable",
    "TableDoc.columns.default": "planning/routes/hybrid.py: column.default",
    "TableDoc.kind": "planning/fingerprint.py: table.kind",
    "TableDoc.time": "planning/landing/forward_query.py: table.time",
    "TableDoc.partition_by": "planning/derived/release.py: wanted.table.partition_by",
    "TableDoc.cluster_by": "planning/fingerprint.py: self.table.cluster_by",
    "TableDoc.retention": "agent/maintenance/retention.py: state.table.retention_days",
    "TableDoc.forward_query": "planning/landing/forward_query.py: table.forward_query",
    "TableDoc.backward_query": "planning/landing/conversion.py: table.backward_query",
    "TableDoc.managed": "planning/rules.py: table.managed",
    "TableDoc.backfill": "planning/routes/read.py: table.backfill",
    "TableDoc.read_time_days": "planning/routes/read.py: table.read_time_days",
    "TableDoc.on_rewrite": "agent/feeds/live_feed.py: self.source.table.on_rewrite",
    "TableDoc.accepts.marker": "planning/landing/forward_query.py: now.marker",
    "TableDoc.accepts.shape": "agent/ingest/shapes.py: accepts.shape",
    "TableDoc.accepts_until": "agent/ingest/shape.py: live.table.accepts_until",
    "TableDoc.source": "planning/landing/adapter.py: wanted.table.source",
    "TableDoc.select": "project/pipeline/adapter.py: doc.select",
    "TableDoc.was": "planning/landing/table_name.py: table.was",
    "TableDoc.history": "planning/routes/__init__.py: wanted.table.history",
    "TableDoc.key": "project/pipeline/newest.py: doc.key",
    "TableDoc.order_by": "project/pipeline/newest.py: doc.order_by",
    "TableDoc.expectations.not_null": "project/pipeline/expectations.py: doc.not_null",
    "TableDoc.expectations.accepted_values": "project/pipeline/expectations.py: doc.accepted_values",
    "TableDoc.expectations.range.min": "project/pipeline/expectations.py: bounds.min",
    "TableDoc.expectations.range.max": "project/pipeline/expectations.py: bounds.max",
    "TableDoc.expectations.unique": "project/pipeline/expectations.py: doc.unique",
    "TableDoc.expectations.freshness": "project/pipeline/expectations.py: doc.freshness",
    "TableDoc.expectations.row_count.min": "project/pipeline/expectations.py: bounds.min",
    "TableDoc.expectations.row_count.max": "project/pipeline/expectations.py: bounds.max",
    "TableDoc.expectations.sql": "project/pipeline/expectations.py: doc.sql",
    "TableDoc.expectations.severity": "project/pipeline/expectations.py: rule.severity",
    "MaterializationDoc.into": "planning/review/keys.py: n.into",
    "EndpointDoc.parameters.type": "cli/commands/query.py: parameter.type",
    "EndpointDoc.parameters.default": "demo/payoff.py: parameter.default",
    "EndpointDoc.owner": "planning/review/answers.py: node.owner",
    "CopyDoc.into": "planning/resolve.py: copy.node.into",
    "CopyDoc.mode": "agent/queries.py: copy.mode",
    "CopyDoc.owner": "planning/review/answers.py: node.owner",
    "FixtureDoc.expect.rows": "fixtures/compare.py: self._wanted.rows",
    "FixtureDoc.expect.parameters": "fixtures/run.py: wanted.parameters",
    "FixtureDoc.expect.key": "fixtures/compare.py: self._wanted.key",
    "FixtureDoc.expect.match": "fixtures/compare.py: self._wanted.match",
    "FixtureDoc.expect.ordered": "fixtures/compare.py: self._wanted.ordered",
    "FixtureDoc.expect.tolerance": "fixtures/compare.py: self._wanted.tolerance",
    "RegionDoc.backfill_spark.master": "drivers/local.py: second.spark.master",
    "RegionDoc.backfill_spark.remote": "cli/doctor.py: second.spark.remote",
    "RegionDoc.backfill_spark.defaults": "drivers/local.py: second.spark.defaults",
    "RegionDoc.backfill_spark.conf": "drivers/local.py: second.spark.conf",
    "RegionDoc.backfill_spark.above.rows": "model/region.py: self.rows",
    "RegionDoc.backfill_spark.above.bytes": "model/region.py: self.bytes",
    "FixtureDoc.given": "fixtures/run.py: fixture.given",
    "FixtureDoc.now": "fixtures/run.py: fixture.now",
    "CallsDoc.calls.parameters": "planning/derived/calls.py: call.parameters",
    "CallsDoc.calls.name": "planning/derived/calls.py: call.name",
    "CallsDoc.calls.differs": "agent/calls/verdict.py: call.differs",
    "CallsDoc.calls.budget.files": "agent/calls/verdict.py: budget.files",
    "CallsDoc.calls.budget.bytes": "agent/calls/verdict.py: budget.bytes",
    "SinkDoc.path": "agent/queries.py: sink.path",
    "SinkDoc.format": "agent/queries.py: sink.format",
    "SinkDoc.owner": "planning/review/answers.py: node.owner",
}
"""Key of a file → `file: expression` by which something outside the reading of the files uses it."""


def inner(annotation: Any) -> type[docs.Doc] | None:
    """The document within an annotation: `dict[str, Annotated[ColumnDoc, …]]` holds ColumnDoc."""
    if isinstance(annotation, type) and issubclass(annotation, docs.Doc):
        return annotation
    return next(filter(None, map(inner, get_args(annotation))), None)


def keys(kind: type[docs.Doc], *above: str) -> Iterator[Keys]:
    """Every key of a document that holds a value, with those of the documents within."""
    for name, annotation in docs.fields(kind).items():
        path = (*above, name)
        within = inner(annotation)
        yield from keys(within, *path) if within else (path,)


VOCABULARY = [(kind, path) for kind in FILE_KINDS for path in keys(kind)]


def dotted(kind: type[docs.Doc], path: Keys) -> str:
    return ".".join((kind.__name__, *map(str, path)))


def listed(kind: type[docs.Doc], path: Keys) -> bool:
    return any(path[: len(unread)] == unread for unread in UNREAD.get(kind, {}))


@cache
def expressions(file: str) -> frozenset[str]:
    """Attributes that a module reads, as written."""
    tree = ast.parse((HOUSE / file).read_text())
    reads = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))
    return frozenset(map(ast.unparse, reads))


@pytest.mark.parametrize(("kind", "path"), VOCABULARY, ids=lambda value: getattr(value, "__name__", str(value)))
def test_every_key_is_read_by_something_or_listed_as_unread(kind: type[docs.Doc], path: Keys) -> None:
    name = dotted(kind, path)
    reader = READERS.get(name)
    assert (reader is not None) + listed(kind, path) == (path[-1] not in TEXTS or reader is not None), name
    if reader is not None:
        file, expression = reader.split(": ")
        assert expression in expressions(file), f"{file} does not read {expression}: {name} has no effect"


def test_the_lists_name_only_keys_that_there_are() -> None:
    assert set(READERS) <= {dotted(kind, path) for kind, path in VOCABULARY}
    for kind, unread in UNREAD.items():
        assert all(listed_path[0] in docs.fields(kind) for listed_path in unread)


def ineffective(root: Path) -> list[Problem]:
    loaded = load(root)
    region = loaded.region("eu")
    return [*loaded.pipeline(None, region).ineffective, *region.ineffective]


CLEAN = {
    "plans/web/pipeline.yaml": "description: requests\n",
    "plans/web/tables/requests.yaml": FILES["plans/web/tables/requests.yaml"].replace(", nullable: false", ""),
}
TABLE, LANDING = str(CLEAN["plans/web/tables/requests.yaml"]), FILES["plans/web/tables/landing.yaml"]
EU = FILES["regions/eu.yaml"]
UNHEARD = {
    "backfill_spark": ("regions/eu.yaml", EU + "backfill_spark: {above: {rows: 5}}\n"),
    "catalog": ("regions/eu.yaml", EU + "catalog: {publish: main.web}\n"),
    "secrets": ("regions/eu.yaml", EU + "secrets: {aws: 'env:AWS_PROFILE'}\n"),
    "secrets.aws": ("regions/eu.yaml", "warehouse: s3://lake/eu\nsecrets: {aws: 'env:AWS_PROFILE'}\n"),
    "follow.idle": ("regions/eu.yaml", EU + "follow: {lag: 5s, idle: 10m}\n"),
    "policy.on_breach": ("regions/eu.yaml", EU + "policy: {on_breach: tell}\n"),
    "policy.watch_query": ("regions/eu.yaml", EU + "policy: {watch_query: SELECT true}\n"),
    "prices": ("regions/eu.yaml", EU + "prices: {tb_read: 5}\n"),
    "expectations": ("plans/web/tables/landing.yaml", LANDING + "expectations: [old > 0]\n"),
    "read_time_days": ("plans/web/tables/requests.yaml", TABLE + "read_time_days: 7\n"),
    "columns.day.nullable": (
        "plans/web/tables/requests.yaml",
        TABLE.replace("day: date", "day: {type: date, nullable: false}"),
    ),
    "backfill": ("plans/web/tables/landing.yaml", LANDING + "backfill: read\n"),
    "columns.old.default": (
        "plans/web/tables/landing.yaml",
        LANDING.replace("managed: true\n", "").replace("old: int", "old: {type: int, default: 3}"),
    ),
    "on_rewrite": ("plans/web/tables/requests.yaml", TABLE + "kind: aggregate\non_rewrite: ignore\n"),
    "schedule": ("plans/web/copies/daily.sql", "/* {into: by_day, schedule: daily} */ SELECT day FROM requests"),
    "the variable `bots`": ("plans/web/pipeline.yaml", "variables: {bots: x}\n"),
}


def test_a_project_whose_keys_are_all_read_gives_no_warning(project: Write) -> None:
    assert ineffective(project(CLEAN)) == []


@pytest.mark.parametrize("key", UNHEARD)
def test_a_key_without_effect_is_a_warning_at_its_place(project: Write, key: str) -> None:
    file, text = UNHEARD[key]
    (problem,) = ineffective(project({**CLEAN, file: text}))
    assert (problem.code, problem.severity) == ("P050", "warn")
    assert problem.where.startswith(f"{file}:")
    assert "has no effect" in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    "follow", ["lag: 5s", "lag: 5s, idle: never", "lag: 15s, idle: 10m", "idle: 10m", "idle: never"]
)
def test_where_lag_and_idle_agree_nothing_is_warned_of(project: Write, follow: str) -> None:
    assert ineffective(project({**CLEAN, "regions/eu.yaml": f"{EU}follow: {{{follow}}}\n"})) == []


def test_what_is_listed_as_unread_is_tried_here() -> None:
    tried = {key.split(".")[-1] for key in UNHEARD}
    assert {str(path[-1]) for unread in UNREAD.values() for path in unread} <= tried


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT * FROM requests WHERE ip RLIKE :bots", True),
        ("SELECT ':bots' AS x FROM requests -- :bots", False),
        ("SELECT day::date AS bots FROM requests", False),
    ],
)
def test_a_variable_counts_as_named_only_where_sql_reads_it(project: Write, sql: str, named: bool) -> None:
    files = {"plans/web/pipeline.yaml": "variables: {bots: x}\n", "plans/web/copies/daily.sql": f"/* into: d */ {sql}"}
    assert bool(ineffective(project({**CLEAN, **files}))) is not named


def test_a_warning_changes_no_digest(project: Write) -> None:
    root = project({**CLEAN, "plans/web/pipeline.yaml": "variables: {bots: x}\n"})
    loaded = load(root).desired["web", "eu"]
    assert loaded.ineffective
    assert replace(loaded, ineffective=()).digest() == loaded.digest()
    assert "ineffective" not in encode(replace(loaded, ineffective=()))


@pytest.mark.parametrize("root", [HOUSE.parent, HOUSE / "project/template"], ids=["demo", "init"])
def test_what_is_shipped_says_nothing_in_vain(root: Path) -> None:
    loaded = load(root)
    assert [p for pipeline in loaded.desired.values() for p in pipeline.ineffective] == []
    assert [p for region in loaded.regions for p in region.ineffective] == []
