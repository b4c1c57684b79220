"""Of several consoles one changes a store: whoever was first, or inherits from a dead one, or takes over and says so."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from socket import gethostname

import pytest

from console.errors import Conflict
from console.stores.clickhouse import ClickHouse as Store
from console.stores.delta import Delta
from console.stores.iceberg import Iceberg
from console.stores.lock import LOCK, StoreLockHolder, marked
from tests.propagation.servers.clickhouse import ClickHouse

pytestmark = pytest.mark.slow

HOST = gethostname()
Lockable = Store | Iceberg | Delta


@pytest.fixture
def stores(tmp_path: Path, clickhouse: ClickHouse) -> Iterator[list[Lockable]]:
    (tmp_path / "raw").mkdir()
    lake = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    results: list[Lockable] = [Store("c", clickhouse.url()), Iceberg("i", lake, "own"), Delta("d", f"{tmp_path}/raw")]
    yield results
    for store in results:
        store.close()


@pytest.mark.stores
def test_one_of_the_same_host_that_lives_keeps_its_lock_and_each_ends_only_its_own(stores: list[Lockable]) -> None:
    for store in stores:
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(store.lock("ada", HOST, take_over=False))
            with pytest.raises(Conflict, match=rf"by ada on {HOST}, process {os.getpid()}, since \d{{4}}-") as refused:
                store.lock("eve", HOST, take_over=False).__enter__()
            assert "--take-over" in refused.value.hint
            second.enter_context(store.lock("bob", HOST, take_over=True))
            first.close()
            with pytest.raises(Conflict, match="by bob"):
                store.lock("eve", HOST, take_over=False).__enter__()
        with store.lock("eve", HOST, take_over=False):
            pass


def test_only_a_process_that_is_gone_for_certain_is_gone() -> None:
    me = StoreLockHolder.now("ada", HOST)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    dead = replace(me, pid=process.pid)
    assert StoreLockHolder.read(dead.mark) == dead
    assert dead.gone
    assert replace(me, born="1").gone  # its number is another's by now
    assert not me.gone
    assert not replace(dead, user=dead.user + 1).gone
    assert not replace(dead, place="another container of this host's name").gone
    assert not StoreLockHolder.read("somewhere\nada").gone  # a mark of other words


class Raced(Delta):
    """Somebody else is quicker, between its look at the lock and its claim."""

    quicker: Callable[[], None] | None = None

    def _mark(self, table: object) -> str:
        result = super()._mark(table)
        quicker, self.quicker = self.quicker, None
        if quicker is not None:
            quicker()
        return result


@pytest.mark.parametrize("used", [False, True])
def test_a_claim_between_look_and_claim_is_not_overwritten(tmp_path: Path, used: bool) -> None:
    store, rival = Raced("d", str(tmp_path)), Delta("d", str(tmp_path))
    if used:
        with store.lock("ada", HOST, take_over=False):
            pass
    with ExitStack() as theirs:
        store.quicker = lambda: theirs.enter_context(rival.lock("bob", HOST, take_over=False))
        with pytest.raises(Conflict, match="by bob"):
            store.lock("ada", HOST, take_over=False).__enter__()


class Slate:
    """Marks in memory; `quicker` comes before the next one is set."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}
        self.quicker: Callable[[], object] | None = None

    def set_mark(self, name: str, mark: str) -> bool:
        quicker, self.quicker = self.quicker, None
        if quicker is not None:
            quicker()
        return self.marks.setdefault(name, mark) == mark

    def mark(self, name: str) -> str | None:
        return self.marks.get(name)

    def drop_mark(self, name: str) -> None:
        self.marks.pop(name, None)


def test_of_two_heirs_of_a_dead_one_the_slower_does_not_take_the_quickers_lock() -> None:
    slate = Slate()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    slate.marks[LOCK] = replace(StoreLockHolder.now("ada", HOST), pid=process.pid).mark
    with ExitStack() as theirs:
        slate.quicker = lambda: theirs.enter_context(marked("s", slate, "bob", HOST, take_over=False))
        with pytest.raises(Conflict, match="by bob"):
            marked("s", slate, "eve", HOST, take_over=False).__enter__()
        assert list(slate.marks) == [LOCK]
    assert not slate.marks


class Twice(Slate):
    """Its client loses the first answer and asks again."""

    def set_mark(self, name: str, mark: str) -> bool:
        super().set_mark(name, mark)
        return name not in self.marks


def test_a_mark_that_was_asked_for_twice_is_still_our_own() -> None:
    slate = Twice()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    slate.marks[LOCK] = replace(StoreLockHolder.now("ada", HOST), pid=process.pid).mark
    with marked("s", slate, "bob", HOST, take_over=False), pytest.raises(Conflict, match="by bob"):
        marked("s", slate, "eve", HOST, take_over=False).__enter__()
    assert not slate.marks


def test_an_heir_that_was_killed_over_a_dead_ones_mark_has_an_heir_too() -> None:
    slate = Slate()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    dead = [replace(StoreLockHolder.now(name, HOST), pid=process.pid) for name in ("ada", "bob")]
    slate.marks[LOCK] = dead[0].mark
    slate.marks[f"{LOCK}_after_{dead[0].nonce}"] = dead[1].mark
    with marked("s", slate, "eve", HOST, take_over=False):
        assert list(slate.marks) == [LOCK]
    assert not slate.marks
