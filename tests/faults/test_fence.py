"""Rows in flight while a fence is taken: each is of history or of the live feed, never of both and never of neither. No Java.

Also: a row that arrives twice is two rows.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import ranges
from console.agent.store import log
from tests.agent.copying import by_arrow
from tests.faults.rules.tables import column_values, copying_feed, foreign, rows

pytestmark = pytest.mark.faults
ROUNDS, TABLES = 1000, 100  # few rounds a table: what one costs grows with its log
WRITERS = 2
MANY = 10**9


@contextmanager
def in_flight(table: str) -> Iterator[None]:
    """Writers that commit a row each without a pause meanwhile."""
    enough = threading.Event()

    def write(first: int) -> None:
        number = first
        while not enough.is_set():
            write_deltalake(table, rows(number), mode="append", partition_by=["day"])
            number += WRITERS

    threads = [threading.Thread(target=write, args=(first,)) for first in range(1, WRITERS + 1)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def test_of_a_thousand_fences_taken_among_rows_in_flight_each_parts_history_from_what_is_live(tmp_path: Path) -> None:
    seen = 0
    for number in range(TABLES):
        table = foreign(tmp_path / str(number), rows(0))
        taken: list[tuple[int, set[str], ranges.Range | None]] = []
        with in_flight(table):
            for _ in range(ROUNDS // TABLES):
                fence = log.latest_version(table)  # as a rollout takes it, while the next commit is being written
                history = {uri.removeprefix("file://") for uri in DeltaTable(table, version=fence).file_uris()}
                taken.append((fence, history, ranges.next_range(table, fence, log.latest_version(table), MANY)))
        sent = added(table)
        assert len(sent) == len(column_values(table)), "one file and one row a commit"
        for fence, history, live in taken:
            assert history == set(sent[: fence + 1])
            if live is not None:
                assert [file.path for file in live.files] == sent[fence + 1 : live.last + 1]
        seen += len({fence for fence, _, _ in taken})
    assert seen > 2 * TABLES, "hardly anybody wrote meanwhile"


def added(table: str) -> list[str]:
    """The file of each commit, in order, from the log's text alone."""
    results = []
    for commit in sorted((Path(table) / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        (path,) = [action["add"]["path"] for action in actions if "add" in action]
        results.append(str(Path(table) / path))
    return results


def test_a_landing_row_that_was_delivered_twice_is_two_rows_and_a_step_done_twice_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_arrow(monkeypatch)
    source, copy = foreign(tmp_path / "landing", rows()), foreign(tmp_path / "copy", rows())
    feed = copying_feed(source, copy)
    feed.open(None)
    for delivered in (rows(1, 2), rows(1, 2), rows(3)):
        write_deltalake(source, delivered, mode="append", partition_by=["day"])
    feed.step(None, log.latest_version(source))
    assert column_values(copy) == [1, 1, 2, 2, 3] == column_values(source)
    again = copying_feed(source, copy)  # another process does it once more
    again.open(None)
    again.step(None, log.latest_version(source))
    assert column_values(copy) == [1, 1, 2, 2, 3]
