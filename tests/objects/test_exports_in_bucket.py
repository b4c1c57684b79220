"""A sink's output in a bucket: one object under one name, which a reader finds whole, old or new. No Java."""

from pathlib import Path
from typing import Any

import pytest

from console.agent.object_store.object_path import ObjectPath
from console.agent.store.exports import MARK, output, put
from console.errors import DataError
from tests.objects.holders import agent
from tests.objects.proxy import Proxy

pytestmark = pytest.mark.s3


class Killed(Exception):
    """The agent dies here."""


def dies(name: str, point: str) -> None:
    if name == point:
        raise Killed


def exported(text: str, name: str = "part-0.json") -> Any:
    def write(fresh: Path) -> int:
        assert str(fresh).startswith("s3://"), "where a Spark of another host cannot write"
        fresh.mkdir()
        (fresh / name).write_text(text)
        (fresh / "_SUCCESS").touch()
        return 3

    return write


def keys(warehouse: ObjectPath) -> set[str]:
    return {entry.key.removeprefix(f"{warehouse.key}/exports/") for entry in (warehouse / "exports").listed()}


def test_a_sinks_output_in_a_bucket_is_one_object_under_one_name(warehouse: ObjectPath, proxy: Proxy) -> None:
    agent(warehouse, proxy)
    export = output(warehouse, "exports/dump", "web", "dump")
    assert put(export, exported("first")) == 3
    put(export, exported("second"))
    assert keys(warehouse) == {f"dump/{MARK}", "dump/part-00000.json"}
    assert (warehouse / "exports/dump/part-00000.json").read_text() == "second"
    put(export, exported("third", "part-0.csv"))
    assert keys(warehouse) == {f"dump/{MARK}", "dump/part-00000.csv"}
    with pytest.raises(DataError, match="belongs to pipeline web"):
        put(output(warehouse, "exports/dump", "other", "dump"), exported("theirs"))
    with pytest.raises(DataError, match="another sink's output"):
        put(output(warehouse, "exports/dump/deeper", "web", "deeper"), exported("below"))
    (warehouse / "exports" / "foreign" / "theirs.json").write_text("somebody's")
    with pytest.raises(DataError, match="was not written by a sink"):
        put(output(warehouse, "exports/foreign", "web", "dump"), exported("ours"))


@pytest.mark.parametrize(("point", "there"), [("before-sink", "first"), ("after-sink", "second")])
def test_killed_while_it_replaces_an_output_a_reader_has_one_of_the_two_and_the_next_run_leaves_nothing(
    warehouse: ObjectPath, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, point: str, there: str
) -> None:
    agent(warehouse, proxy)
    export = output(warehouse, "exports/dump", "web", "dump")
    put(export, exported("first"))
    with monkeypatch.context() as armed:
        armed.setattr("console.crash.point", lambda name: dies(name, point))
        with pytest.raises(Killed):
            put(export, exported("second"))
    assert (warehouse / "exports/dump/part-00000.json").read_text() == there
    agent(warehouse, proxy)
    put(export, exported("third"))
    assert (warehouse / "exports/dump/part-00000.json").read_text() == "third"
    assert keys(warehouse) == {f"dump/{MARK}", "dump/part-00000.json"}
