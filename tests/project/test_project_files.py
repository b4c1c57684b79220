"""load(): the model holds exactly the contents of the files."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import FILES, Write

from console.errors import UsageError
from console.model.pipeline import Copy, Endpoint, Materialization, Override, Parameter, Sink
from console.model.region import BackfillSpark, Limits, Spark, Ssh
from console.model.schema import Column, Table
from console.project import find, load

WHOLE = """\
name: xx
environment: prod
owner: data-platform
zone: Europe/Madrid
wave: 3
canary: false
warehouse: s3://acme-xx/web
transport: {ssh: {host: xx.example.net, port: 2222, user: ops, key: "file:/k", known_hosts: h, jump: j, bootstrap: true}}
spark: {master: "spark://x:7077", conf: {spark.b: true}}
backfill_spark: {master: "spark://y:7077", above: {rows: 100_000_000, bytes: 50 GiB}}
catalog: {publish: main.web}
secrets: {aws: "env:AWS_PROFILE"}
limits: {rows: 5_000_000, bytes: 20 GiB, target_seconds: 90}
throttle: {lag: 2m, hours: "22:00-06:00", query: "SELECT true"}
policy: {promote: never, min_soak: 30m, soak: {clean_intervals: 5}, watch: 45m, on_breach: rollback, watch_query: "SELECT true", approvals: 1, ticket: optional, quarantine_rows: 0,
         on_failure: discard, keep_failed: 24h, rollback_window: 2d, preview_expires: 12h}
prices: {core_hour: 0.05, tb_read: 5, tb_month: 23}
"""


def test_every_node_arrives_with_its_place(project: Write) -> None:
    root = project({})
    loaded = load(root)
    pipeline = loaded.pipeline(None, loaded.region("eu"))
    assert (loaded.names, pipeline.name, pipeline.description) == (("web",), "web", "requests")
    assert pipeline.variables == (("bots", "no"), ("days", "07"))
    assert pipeline.tables == (
        Table(
            name="landing",
            kind="landing",
            columns=(
                Column(name="id", type="string"),
                Column(name="ts", type="timestamp"),
                Column(name="payload", type="string"),
                Column(name="old", type="int"),
            ),
            time="ts",
            retention_days=30,
            managed=True,
            where="plans/web/tables/landing.yaml:1:1",
        ),
        Table(
            name="requests",
            kind="append",
            columns=(
                Column(name="event_id", type="string", nullable=False),
                Column(name="day", type="date"),
                Column(name="ts", type="timestamp"),
                Column(name="status", type="int", default="200"),
            ),
            time="ts",
            partition_by=("day",),
            where="plans/web/tables/requests.yaml:1:1",
        ),
    )
    assert pipeline.materializations == (
        Materialization(
            name="parse",
            into="requests",
            sql="SELECT id AS event_id FROM landing",
            where="plans/web/materializations/parse.sql:3:3",
        ),
    )
    day, limit = Parameter("day", "date"), Parameter("limit", "int", "10")
    top = "plans/web/endpoints/top.sql:5:1"
    assert pipeline.endpoints == (
        Endpoint(name="top", sql="SELECT * FROM requests", parameters=(day, limit), owner="web", where=top),
    )
    copy = Copy(name="daily", into="by_day", sql="SELECT day FROM requests", where="plans/web/copies/daily.sql:1:20")
    assert pipeline.copies == (copy,)
    sink = "plans/web/sinks/export.sql:5:1"
    assert pipeline.sinks == (
        Sink(name="export", sql="SELECT * FROM requests", path="exports/requests", format="csv", where=sink),
    )


def test_a_region_is_its_file_over_the_defaults(project: Write) -> None:
    root = project({"regions/xx.yaml": WHOLE})
    us, eu, xx = load(root).regions
    assert (us.name, eu.name, xx.name) == ("us", "eu", "xx")  # by wave, the canary first
    assert (us.owner, us.warehouse, us.limits) == ("data", "s3://acme-us/web", Limits(1_000, 20 * 2**30))
    assert (eu.warehouse, eu.spark) == (str(root.resolve() / "lake/eu"), Spark(conf=(("spark.a", "0123"),)))
    assert xx.transport == Ssh(
        host="xx.example.net",
        port=2222,
        user="ops",
        key="file:/k",
        known_hosts=str(root / "h"),
        jump="j",
        bootstrap=True,
    )
    assert xx.spark == Spark("spark://x:7077", "", (("spark.a", "0123"), ("spark.b", "true")))
    assert xx.backfill_spark == BackfillSpark(spark=Spark("spark://y:7077"), rows=100_000_000, bytes=50 * 2**30)
    assert eu.backfill_spark is None
    assert (xx.policy.promote, xx.policy.keep_failed_hours, xx.policy.rollback_window_hours) == ("never", 24.0, 48.0)
    assert xx.policy.preview_expires_hours == 12.0
    assert (xx.policy.watch_seconds, xx.policy.on_breach, xx.policy.watch_query) == (2700.0, "rollback", "SELECT true")
    assert (xx.prices.tb_month, xx.limits.target_seconds, xx.where) == (23.0, 90.0, "regions/xx.yaml:1:1")


def test_a_key_written_as_nothing_takes_the_default_away(project: Write) -> None:
    root = project({"regions/eu.yaml": "warehouse: lake/eu\nlimits: {rows: }\nspark: null\n"})
    assert load(root).region("eu").limits == Limits(None, 20 * 2**30)
    assert load(root).region("eu").spark == Spark()


def test_overrides_add_remove_and_change_and_each_is_recorded(project: Write) -> None:
    overrides = (
        "warehouse: lake/eu\noverrides:\n  web:\n    variables: {days: 3}\n    tables:\n      landing:\n"
        "        retention: 3d\n        columns: {+ext_id: string, -old: , id: {comment: key}}\n"
        "      requests: {columns: {status: bigint}}\n"
    )
    other = "warehouse: lake/zz\noverrides: {web: {tables: {landing: {owner: me}}, variables: {bots: 1}}}\n"
    loaded = load(project({"regions/eu.yaml": overrides, "regions/zz.yaml": other}))
    zz = loaded.pipeline("web", loaded.region("zz"))
    assert [override.path for override in zz.overrides] == ["tables.landing.owner", "variables.bots"]
    assert ([column.name for column in zz.tables[0].columns][-1], zz.variables[1]) == ("old", ("days", "07"))
    eu, us = (loaded.pipeline("web", loaded.region(name)) for name in ("eu", "us"))
    landing, requests = eu.tables
    assert [column.name for column in landing.columns] == ["id", "ts", "payload", "ext_id"]
    assert (landing.columns[0], landing.retention_days) == (Column(name="id", type="string", comment="key"), 3)
    assert requests.column("status") == Column(name="status", type="bigint", default="200")
    assert eu.overrides == (
        Override(path="tables.landing.columns.ext_id", base="", value="string", where="regions/eu.yaml:8:19"),
        Override(path="tables.landing.columns.id", base="string", value="{comment: key}", where="regions/eu.yaml:8:44"),
        Override(path="tables.landing.columns.old", base="int", value="", where="regions/eu.yaml:8:36"),
        Override(path="tables.landing.retention", base="30d", value="3d", where="regions/eu.yaml:7:9"),
        Override(
            path="tables.requests.columns.status",
            base="{type: integer, default: 200}",
            value="bigint",
            where="regions/eu.yaml:9:28",
        ),
        Override(path="variables.days", base="07", value="3", where="regions/eu.yaml:4:17"),
    )
    assert dict(eu.variables)["days"] == "3"
    assert us.overrides == ()
    assert us == load(project({"regions/eu.yaml": "warehouse: lake/eu\n"})).pipeline("web", loaded.region("us"))


def test_a_moved_line_changes_no_digest(project: Write) -> None:
    before = load(project({}))
    moved = {name: "\n\n" + text for name, text in FILES.items() if name.startswith("plans/web/tables/")}
    after = load(project(moved))
    assert before.pipeline("web", before.regions[0]) != after.pipeline("web", after.regions[0])
    assert before.pipeline("web", before.regions[0]).digest() == after.pipeline("web", after.regions[0]).digest()


@pytest.mark.parametrize(
    ("columns", "rest", "time"),
    [
        ("a: date, b: timestamp, c: timestamp", "", "b"),
        ("a: date, b: string", "", ""),
        ("a: date, b: string", "partition_by: [a]", "a"),
        ("a: date, b: timestamp", "time: a", "a"),
        ("a: date, b: timestamp", "time:", ""),
    ],
)
def test_time_is_the_first_timestamp_unless_declared(project: Write, columns: str, rest: str, time: str) -> None:
    text = f"columns: {{{columns}}}\n{rest}\n"
    loaded = load(project({"plans/web/tables/requests.yaml": text}))
    table = loaded.pipeline("web", loaded.regions[0]).table("requests")
    assert table is not None
    assert table.time == time


def test_regions_are_chosen_by_name_wave_and_all(project: Write) -> None:
    loaded = load(project({}))
    us, eu = loaded.regions
    assert loaded.select("eu, us") == loaded.select("all") == loaded.select("us,us,@wave2") == (us, eu)
    assert loaded.select("@wave2") == (eu,)
    assert loaded.select("@canary") == (us,)
    wrong = {"eu;rm -rf": "", "eeu": "`eu`", "": "--regions", ",": "--regions", "@wave9": "`@wave", "@": "@canary"}
    for text, hint in wrong.items():
        with pytest.raises(UsageError) as error:
            loaded.select(text)
        assert error.value.exit_code == 64
        assert hint in error.value.hint
    with pytest.raises(UsageError, match="no pipeline is named `wep`") as error:
        loaded.pipeline("wep", us)
    assert error.value.hint == "did you mean `web`?"
    with pytest.raises(UsageError, match="2 pipelines"):
        replace(loaded, names=("api", "web")).pipeline(None, us)


def test_the_project_is_found_from_below_but_not_beyond_its_repository(project: Write, tmp_path: Path) -> None:
    root = project({}).resolve()
    assert find(root) == find(root / "plans" / "web") == root
    other = root / "other" / "deep"
    other.mkdir(parents=True)
    assert find(other) == root
    (root / "other" / ".git").mkdir()
    with pytest.raises(UsageError, match="no project here"):
        find(other)


@pytest.mark.slow
def test_importing_costs_little_and_loading_ten_nodes_in_three_regions_takes_under_60_ms(project: Write) -> None:
    code = "import sys, console.project; print(*{'yaml', 'pydantic', 'difflib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == ""
    wide = "columns:\n" + "".join(f"  c{i}: {{type: string, comment: field {i}}}\n" for i in range(20))
    more = {f"plans/web/endpoints/e{i}.sql": "SELECT 1 FROM requests" for i in range(5)}
    root = project({"plans/web/tables/requests.yaml": wide, "regions/ap.yaml": "warehouse: lake/ap\n", **more})
    load(root)
    spent = []
    for _ in range(3):
        start = time.process_time()
        load(root)
        spent.append(time.process_time() - start)
    assert min(spent) < 0.06
