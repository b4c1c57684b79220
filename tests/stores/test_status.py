"""The lines of `console status` about stores; no problem of a store prevents the lines about regions."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pytest
from deltalake import write_deltalake

from console.cli.commands.schema.unstored import arriving
from console.errors import Unreachable
from console.project import load
from console.stores.consumer import Fit, Left, lagging
from console.stores.delta import Delta
from console.stores.files import read_plan
from tests.stores.project import Project

pytestmark = pytest.mark.stores
SECONDS = 60


@contextmanager
def silent() -> Iterator[tuple[socket.socket, str]]:
    """A server that answers nobody, and its address as a store's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/default"
        yield server, f'tables: {{issues: }}\nstores: {{far: {{kind: clickhouse, url: "{url}"}}}}\n'


def test_what_is_wrong_with_a_store_is_a_line_below_the_regions(tmp_path: Path) -> None:
    made = Project(tmp_path, "", "")
    del made.env["CLICKHOUSE_URL"]
    done = made.console("status")
    assert done.returncode == 0, done.stderr
    regions, _, stores = done.stdout.partition("arriving but not stored:")
    assert "eu" in regions
    assert "the variable CLICKHOUSE_URL is not set" in stores
    made.replicate("tables: {issues: {nobody: knows}}\n")
    done = made.console("status")
    assert done.returncode == 0, done.stderr
    regions, _, stores = done.stdout.partition("arriving but not stored:")
    assert "eu" in regions
    assert "plans/app/replication.yaml:1:" in stores


def test_a_store_that_does_not_answer_is_told_in_time_and_keeps_nobody(tmp_path: Path) -> None:
    made = Project(tmp_path, "", "")
    with silent() as (_, replication):
        made.replicate(replication)
        [report] = arriving(tmp_path, "app", load(tmp_path).regions, timeout=0.2)
        assert (report.name, report.error) == ("eu/far", "no answer within 0.2 s")
    with silent() as (server, replication):
        made.replicate(replication)
        # what a script's background starts ignores Ctrl-C, and so would the console that these tests start there
        words = ["env", "--default-signal=INT", sys.executable, "-m", "console.main", "status"]
        with subprocess.Popen(
            [*words, "--project", str(tmp_path)],
            env=made.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert any(line.startswith("eu") or " eu" in line for line in process.stdout)  # before the store gives up
            with server.accept()[0]:
                process.send_signal(signal.SIGINT)
                assert process.wait(SECONDS) == 130


class Full(Delta):
    """Takes the counts of one table and then no more, until there is room again."""

    room = 1

    def add_left_out(self, place: str, rows: Mapping[str, int], at: float) -> None:
        self.room -= 1
        if self.room < 0:
            raise Unreachable("no room")
        super().add_left_out(place, rows, at)


def test_counts_that_could_not_be_written_are_written_once_later(tmp_path: Path) -> None:
    store = Full("raw", str(tmp_path))
    left = Left(store)
    for place in ("one", "two"):
        left.add(place, Fit((), ("kind",)), 5)
    with pytest.raises(Unreachable):
        left.flush()
    store.room = 9
    left.flush()
    assert sorted((one.place, one.rows) for one in store.left_out()) == [("one", 5), ("two", 5)]


def test_columns_that_no_store_is_to_have_are_not_missed(tmp_path: Path) -> None:
    made = Project(tmp_path, "", "")
    made.replicate(f"tables: {{issues: {{ignore: [html]}}}}\nstores: {{raw: {{kind: delta, root: {tmp_path}/raw}}}}\n")
    write_deltalake(f"{tmp_path}/raw/issues", pyarrow.table({"id": [1]}))
    store = Delta("raw", f"{tmp_path}/raw")
    store.add_left_out("issues", {"html": 3, "kind": 4}, 0.0)
    plan = read_plan(tmp_path, "app")
    assert [one.column for one in lagging(store, plan.replication.stores[0], plan.replication)] == ["kind"]
