"""S3: a release that lies runs nothing in the program that reads it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console import open_release
from console.agent.store.ledger import Releases
from console.errors import DataError
from console.model.live import Release, TableState, Version
from console.model.schema import Column, Table
from console.planning.sql.duckdb import read_of
from tests.hostile.test_fuzz import WHOLE, read, written

pytestmark = pytest.mark.slow

COLUMNS = (Column(name="id", type="string"), Column(name="n", type="bigint"))
LIES = (
    "SELECT reflect('java.lang.Runtime', 'getRuntime') FROM stored",
    "SELECT java_method('java.lang.System', 'getenv', 'HOME') FROM stored",
    "SELECT TRANSFORM (id) USING 'id' AS (x) FROM stored",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM `/etc/passwd`",
    "SELECT * FROM parquet.`/etc/passwd`",
    "SELECT * FROM other.stored",
    "SELECT * FROM stored JOIN secrets",
    "SELECT (SELECT max(x) FROM secrets) FROM stored",
    "WITH stored2 AS (SELECT * FROM secrets) SELECT * FROM stored2",
    "WITH `/etc/passwd` AS (SELECT * FROM `/etc/passwd`) SELECT * FROM `/etc/passwd`",
    "WITH stored AS (SELECT * FROM stored) SELECT * FROM stored",
    "SELECT getenv('HOME') FROM stored",
    "SELECT * FROM stored; DROP TABLE secrets",
    "COPY stored TO '/tmp/x'",
    "CREATE TABLE x AS SELECT * FROM stored",
    "ATTACH '/tmp/x'",
    "",
    "(" * 5_000,
)


class Untouched:
    """A session that nothing may be asked of."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the session was asked for {name}")


def released(lake: Path, read: str) -> None:
    """A live release of one small table, with this read."""
    rows = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
    write_deltalake(str(lake / "requests" / "v-1"), rows)
    version = Version(content="v", path="requests/v-1", columns=COLUMNS)
    state = TableState(
        table=Table(name="requests", kind="append", columns=COLUMNS), version=version, read=read, rows="", values={}
    )
    releases = Releases(lake, "web")
    releases.propose(Release(id="r1", pipeline="web", digest="d", tables=(state,), feeds=()), "web-1", "ada", "laptop")
    releases.swap("", "r1", "ada", "laptop")


@pytest.mark.parametrize("read", LIES)
def test_s03_a_release_that_lies_runs_nothing_in_the_program_that_reads_it(tmp_path: Path, read: str) -> None:
    released(tmp_path, read)
    release = open_release(warehouse=tmp_path, pipeline="web")
    for take in (lambda: release.arrow("requests"), lambda: release.spark("requests", Untouched())):
        with pytest.raises(DataError):
            take()


def test_a_release_is_read_by_its_logical_names_without_spark(tmp_path: Path) -> None:
    released(tmp_path, "SELECT id, n + 1 AS m FROM stored")
    release = open_release(warehouse=tmp_path, pipeline="web")
    assert release.id == "r1"
    assert release.path("requests") == str(tmp_path / "requests" / "v-1")
    assert release.arrow("requests", "id = 'b'").to_pylist() == [{"id": "b", "m": 3}]
    with pytest.raises(DataError, match=r"has no table 'request' \(it has requests\)"):
        release.path("request")
    assert read_of("SELECT * FROM stored").sql() == "SELECT * FROM stored"


def test_every_read_that_the_planner_makes_is_one(tmp_path: Path) -> None:
    states = [state for plan in read(written(tmp_path, WHOLE)) for state in plan.release.tables]
    assert len(states) > 3
    for state in states:
        read_of(state.read)
