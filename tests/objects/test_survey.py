"""`console plan` of a region whose warehouse is a bucket: read and never written; what cannot be rolled out is refused by name."""

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.store_survey import has_releases, survey
from console.errors import RegionError, Unreachable
from console.model.live import TableStats
from tests.objects.conftest import Place
from tests.objects.proxy import Fate, Proxy
from tests.objects.server import options

pytestmark = pytest.mark.s3

FILES = {
    "plans/web/pipeline.yaml": "name: web\ndescription: requests\n",
    "plans/web/tables/landing.yaml": (
        "kind: landing\nmanaged: false\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
    ),
    "plans/web/tables/requests.yaml": (
        "kind: append\ntime: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date}\n"
    ),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT id, ts, to_date(ts) AS day FROM landing\n"
    ),
}
NOON = datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Bucket:
    """A warehouse behind the proxy. environment: of a console that is to reach it; asked: requests so far"""

    warehouse: str
    around: dict[str, str]
    environment: Mapping[str, str]
    asked: list[str]

    def landing(self, name: str = "landing") -> None:
        times = pa.array([NOON, NOON, NOON + datetime.timedelta(days=1)], pa.timestamp("us", "UTC"))
        rows = pa.table({"id": ["a", "b", "c"], "ts": times, "payload": ["{}"] * 3})
        write_deltalake(f"{self.warehouse}/{name}", rows, storage_options=self.around)


@pytest.fixture
def bucket(place: Place, server: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    asked: list[str] = []

    def rule(method: str, path: str) -> Fate:
        asked.append(method)
        return "pass"

    proxy.rule = rule
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    # in front of the instance's credentials, which nothing here may ask for
    own = {**options(proxy.address), "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return Bucket(place.objects.address, options(server), {**kept, **own}, asked)


def surveyed(warehouse: str) -> tuple[TableStats, ...]:
    assert not has_releases(warehouse, "us", "web")
    return survey(warehouse, "us", "web", ["landing"]).stats


def console(bucket: Bucket, home: Path, *words: str, region: str = "") -> subprocess.CompletedProcess[str]:
    project = home / "project"
    for name, text in {**FILES, "regions/us.yaml": f"warehouse: {bucket.warehouse}\n{region}\n"}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    environment = {**bucket.environment, "CONSOLE_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "console.main", *words]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_region_on_a_bucket_is_planned_from_its_landing_table(bucket: Bucket, tmp_path: Path) -> None:
    bucket.landing()
    done = console(bucket, tmp_path, "plan", "--output", "json")
    plan: dict[str, Any] = json.loads(done.stdout)["plans"][0]
    assert [(node["name"], node["action"]) for node in plan["nodes"]] == [("landing", "create"), ("requests", "create")]
    assert (plan["price"]["days"], plan["price"]["rows"]) == (2, 3)
    assert [problem for problem in plan["problems"] if problem["severity"] == "refuse"] == []
    assert bucket.asked
    assert set(bucket.asked) <= {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("spark: {master: yarn}", "is in a bucket, and its Spark is neither a local one nor a standalone cluster"),
        (
            "spark: {master: 'k8s://https://host:6443'}",
            "is in a bucket, and its Spark is neither a local one nor a standalone cluster",
        ),
    ],
)
def test_a_region_in_a_bucket_whose_agent_would_not_start_is_refused_in_its_plan(
    bucket: Bucket, tmp_path: Path, more: str, why: str
) -> None:
    bucket.landing()
    done = console(bucket, tmp_path, "apply", "--yes", region=more)
    assert done.returncode == 65
    assert f"{bucket.warehouse} {why}: the region can be planned" in done.stderr
    assert "P043" in done.stderr
    assert set(bucket.asked) <= {"GET", "HEAD"}


def test_a_bucket_without_the_landing_table_has_none(bucket: Bucket) -> None:
    assert surveyed(bucket.warehouse) == ()


def test_a_bucket_that_does_not_answer_is_unreachable_and_not_empty(bucket: Bucket, proxy: Proxy) -> None:
    bucket.landing()
    proxy.partition()
    with pytest.raises(Unreachable, match=f"us: {bucket.warehouse}/_console/web/releases: .*Generic S3 error") as error:
        surveyed(bucket.warehouse)
    assert "\x1b" not in str(error.value)
    proxy.heal()
    assert surveyed(bucket.warehouse)[0].rows == 3


def test_a_store_that_fails_between_two_reads_is_unreachable_too(bucket: Bucket, proxy: Proxy) -> None:
    bucket.landing()
    proxy.rule = lambda method, path: "drop" if "landing" in path else "pass"
    with pytest.raises(Unreachable, match=r"us: .*/landing: "):
        surveyed(bucket.warehouse)


def test_the_releases_of_a_bucket_are_not_taken_for_none(bucket: Bucket) -> None:
    bucket.landing("_console/web/releases")
    assert has_releases(bucket.warehouse, "us", "web")


def test_s3a_is_s3_and_other_stores_are_refused_by_name(bucket: Bucket) -> None:
    bucket.landing()
    assert surveyed(bucket.warehouse.replace("s3:", "s3a:"))[0].rows == 3
    with pytest.raises(RegionError, match="warehouses of hdfs:// are not read"):
        survey("hdfs://name/web", "us", "web", ["landing"])


def test_the_profile_of_the_environment_reaches_the_store(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.landing()
    (tmp_path / "keys").write_text("[lake]\naws_access_key_id = A\naws_secret_access_key = s\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_PROFILE", "lake")
    assert surveyed(bucket.warehouse)[0].rows == 3
