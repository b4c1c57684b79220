"""The journal: no action without a prior entry, and no trust in entries that console did not write."""

import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from console.drivers.fake import FakeDriver
from console.errors import ConsoleError
from console.model.event import Entered, Recorded
from console.runner.journal import Journal
from tests.room import room
from tests.runner.worlds import World, fake


def test_what_is_written_is_read_back_by_the_next_process(folder: Path) -> None:
    journal = Journal(folder / "journal.db", clock=lambda: 5.0)
    intent = journal.intent("eu", "web", "accept", {"plan": "abc"})
    lost = journal.intent("us", "web", "accept", {"plan": "abc"})
    journal.outcome(intent, "eu", "web", "done")
    journal.record_event("eu", "web", Recorded("web-2", 2, 4.0, Entered("preparing")))
    journal.fleet("web", [["us"], ["eu"]], {"yes": True})
    journal.close()

    again = Journal(folder / "journal.db")
    assert [entry.kind for entry in again.entries()] == ["intent", "intent", "outcome", "event", "fleet"]
    assert [entry.id for entry in again.open_intents()] == [lost]
    assert again.events("eu") == (Recorded("web-2", 2, 4.0, Entered("preparing")),)
    assert again.entries("fleet")[0].body["waves"] == [["us"], ["eu"]]
    again.close()


def test_only_its_owner_may_read_it_and_a_link_in_its_place_is_not_followed(folder: Path) -> None:
    mask = os.umask(0)
    try:
        journal = Journal(folder / "journal.db")
        journal.intent("eu", "web", "accept", {})
        for path in folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        journal.close()
        (folder / "elsewhere").write_bytes(b"")
        (folder / "link.db").symlink_to(folder / "elsewhere")
        with pytest.raises(ConsoleError, match=r"link\.db"):
            Journal(folder / "link.db").check()
        assert (folder / "elsewhere").read_bytes() == b""
    finally:
        os.umask(mask)


async def test_with_a_full_disk_nothing_is_handed_over_and_afterwards_it_goes_on(tmp_path: Path, folder: Path) -> None:
    eu = fake("eu")
    journal = Journal(tmp_path / "journal.db")
    journal.check()
    fleet = World(folder, eu).console(journal=journal)
    driver = fleet.driver("eu")
    assert isinstance(driver, FakeDriver)
    await fleet.refresh()
    with room(4096):
        for act in (fleet.start("eu"), fleet.run(yes=True), fleet.control("eu", "pause"), fleet.rollback("eu")):
            with pytest.raises(ConsoleError) as caught:
                await act
            assert caught.value.code == "E_JOURNAL"
            assert str(journal.path) in str(caught.value)
            assert "bytes free" in str(caught.value)
    assert {"accept", "pause", "rollback"}.isdisjoint(driver.calls)
    assert not eu.disk.stored
    (outcome,) = await fleet.run(yes=True)
    assert outcome.state == "live"
    await fleet.close()


@pytest.mark.parametrize("path", ["missing/journal.db", "file/journal.db"])
def test_a_place_that_cannot_be_written_is_named(path: str, folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(ConsoleError, match=r"journal\.db") as caught:
        Journal(folder / path).intent("eu", "web", "accept", {})
    assert caught.value.hint


def _flip_body(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE entries SET body = replace(body, 'abc', 'abd')")


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _overwrite(path: Path) -> None:
    path.write_bytes(b"\0" * 4096)


def _no_database(path: Path) -> None:
    path.write_text("hello, world" * 1000)


@pytest.mark.parametrize("damage", [_flip_body, _truncate, _overwrite, _no_database])
def test_a_damaged_journal_is_not_acted_upon_and_can_be_set_aside(damage: object, folder: Path) -> None:
    path = folder / "journal.db"
    journal = Journal(path)
    journal.intent("eu", "web", "accept", {"plan": "abc"})
    journal.close()
    assert callable(damage)
    damage(path)
    with pytest.raises(ConsoleError, match="damaged") as caught:
        journal.intent("eu", "web", "promote", {})
    assert "console doctor" in caught.value.hint

    moved = journal.move_damaged()
    assert moved.exists()
    journal.intent("eu", "web", "promote", {})
    assert [entry.body["verb"] for entry in journal.entries()] == ["promote"]
    journal.close()


def test_a_newer_journal_is_left_alone(folder: Path) -> None:
    path = folder / "journal.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(ConsoleError, match="version 9"):
        Journal(path).check()


@pytest.mark.slow
def test_two_consoles_and_many_threads_lose_no_line(folder: Path) -> None:
    journals = [Journal(folder / "journal.db") for _ in range(2)]

    def write(journal: Journal) -> None:
        for number in range(20):
            journal.outcome(journal.intent("eu", "web", "pause", {"n": number}), "eu", "web", "done")

    threads = [threading.Thread(target=write, args=(journal,)) for journal in journals for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journals[0].entries()) == 2 * 20 * 6
    assert not journals[1].open_intents()
    for journal in journals:
        journal.close()
