"""All that a person does with a region, in a bucket: rows of others, lines, a change and its way back, previews, copies, sinks, holds, receipts,
tidying up. Real consoles and Spark."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.objects.region import CHANGED, MANAGED, Region, becomes, environment, read_by_others, tidied
from tests.objects.server import BUCKET, OWNED, options, owner

pytestmark = [pytest.mark.spark, pytest.mark.s3]


SECRETS = ("SECRET-uses", "TOKEN-uses")
NEEDED = (
    "secrets: {{aws_access_key_id: 'env:LAKE_KEY', aws_secret_access_key: 'cmd:printenv LAKE_SECRET',"
    " aws_session_token: 'file:{0}'}}\n"
)


@pytest.fixture
def region(server: str, tmp_path: Path) -> Iterator[Region]:
    """Its folder is opened by credentials to which only its file in the inventory leads."""
    token = tmp_path / "token"
    token.write_text("TOKEN-uses\n")
    token.chmod(0o600)
    named = {"LAKE_KEY": "KEY-uses", "LAKE_SECRET": "SECRET-uses"}
    with tempfile.TemporaryDirectory(prefix="console-") as run:
        made = Region(
            home=tmp_path,
            warehouse=f"s3://{BUCKET}/{OWNED}uses",
            store={**options(server), **owner("uses")},
            environment={**environment(tmp_path, options(server), Path(run)), **named},
            more=NEEDED.format(token),
        )
        yield made
        made.end()


def test_a_region_in_a_bucket_lives_like_one_on_a_disk(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    region.write(MANAGED)
    region.produce(200)
    region.console("--headless", "--yes")
    first = region.lines(100)
    assert "100 rows added" in region.console("ingest", str(first), "--region", "us")
    assert "already there" in region.console("ingest", str(first), "--region", "us")
    becomes(region, 300)

    _goes_out(region, runs=[300])
    region.write({**MANAGED, **CHANGED})
    _previewed(region)
    region.console("apply", "--yes")
    region.console("ingest", str(region.lines(60)), "--region", "us")
    becomes(region, 360)
    becomes(region, 360, "previous")
    assert "all" in region.console("verify", "--rollout", "web-2")
    assert "web-2" in region.console("show", "web-2")
    assert "web-2" in region.console("history")
    read_by_others(region, monkeypatch)
    _goes_out(region, runs=[300, 360])

    previous = region.paths("previous")["requests"]
    region.console("cleanup", "--region", "us", "--previous", "--hold", "24h", "--yes")
    region.console("cleanup", "--region", "us", "--restore", "--yes")
    assert region.paths("previous")["requests"] == previous
    region.console("rollback", "--yes", "--region", "us")
    region.console("ingest", str(region.lines(40)), "--region", "us")
    becomes(region, 400)
    becomes(region, 400, "previous")
    tidied(region)

    _no_secret_is_seen(region)


def _goes_out(region: Region, runs: list[int]) -> None:
    """Copies and the sink hold all rows; runs: what the copy that appends has counted each time, now included"""
    region.console("copy", "all_days", "--region", "us")
    region.console("copy", "runs", "--region", "us")
    region.console("sink", "days", "--region", "us")
    copied = region.table("all_days/copy").to_pyarrow_table()
    assert sum(copied["requests"].to_pylist()) == region.sent
    assert sorted(region.table("runs/copy").to_pyarrow_table()["n"].to_pylist()) == runs
    assert _exported(region) == region.sent


def _previewed(region: Region) -> None:
    """One day of three is built beside live, and dropped."""
    region.console("preview", "--region", "us", "--name", "wide", "--days", "1")
    counted = region.console("query", "--region", "us", "--release", "wide", "SELECT count(status) AS n FROM requests")
    assert "100" in counted
    assert "wide" in region.console("preview", "--region", "us", "--list")
    assert [key for key in region.objects("requests") if "-p" in key]
    region.console("preview", "--region", "us", "--drop", "wide")
    assert [key for key in region.objects("requests") if "-p" in key] == []


def _no_secret_is_seen(region: Region) -> None:
    assert region.running()  # its own command line and its JVM's are among these
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            assert not [value for value in SECRETS if value.encode() in words]
    files = [path for path in region.home.rglob("*") if path.is_file() and path.name != "token"]
    assert [path for path in files if path.name.startswith("agent-")]
    assert not [path for path in files for value in SECRETS if value in path.read_text(errors="ignore")]


def _exported(region: Region) -> int:
    """Requests in the sink's only file."""
    (name,) = [key for key in region.objects("exports/days") if not key.endswith("_CONSOLE_SINK")]
    assert name.endswith("exports/days/part-00000.json")
    return sum(json.loads(line)["requests"] for line in region.text("exports/days/part-00000.json").splitlines())
