"""The loads of a table read from its log, also after log cleanup, or with another table in its place. No Java."""

import json
from pathlib import Path
from shutil import copytree, rmtree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console.agent.ingest import loads
from console.agent.store import log, open_tables
from console.model.load import Landed

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def landed(table: str) -> dict[str, int]:
    """Load → rows, as a process that knows the table by now has them."""
    table_loads = loads.of(table)
    return {load: head.rows for load in ("a", "b", "c") if (head := table_loads.head(load))}


def lands(table: str, load: str, rows: int) -> None:
    """A commit that ends so far into a load."""
    end = Landed(load=load, first="00", chain=f"{rows:02}", rows=rows, line=rows)
    name = loads.app_id(open_tables.table_id(table), end)
    own = CommitProperties(app_transactions=[Transaction(name, rows)])
    write_deltalake(
        table, pa.Table.from_pylist([{"id": load, "n": rows}], SCHEMA), mode="append", commit_properties=own
    )


def test_a_table_in_anothers_place_has_its_own_loads_whichever_ids_they_have(tmp_path: Path) -> None:
    """Back and forth between two, each with as many commits: one of the ids sorts before the other."""
    place, here = tmp_path / "landing", {}
    for load in "ab":
        write_deltalake(str(place), pa.Table.from_pylist([], SCHEMA))
        lands(str(place), load, 2)
        here[load] = place.rename(tmp_path / load)
    loads.forget()
    for load in "abab":
        here[load].rename(place)
        assert landed(str(place)) == {load: 2}
        place.rename(here[load])


def test_a_table_that_was_put_back_to_an_older_copy_has_the_loads_of_the_copy(tmp_path: Path) -> None:
    place = tmp_path / "landing"
    write_deltalake(str(place), pa.Table.from_pylist([], SCHEMA))
    lands(str(place), "a", 2)
    copytree(place, tmp_path / "copy")
    lands(str(place), "a", 5)
    assert landed(str(place)) == {"a": 5}
    rmtree(place)
    copytree(tmp_path / "copy", place)
    assert landed(str(place)) == {"a": 2}


def in_parts(table: Path, parts: int) -> list[Path]:
    """The newest checkpoint cut into so many files, as Spark does for large tables; the commits before it are cleaned up."""
    DeltaTable(str(table)).create_checkpoint()
    folder, latest = table / "_delta_log", log.latest_version(str(table))
    whole = folder / f"{latest:020}.checkpoint.parquet"
    actions = pq.read_table(whole)
    whole.unlink()
    for version in range(latest):
        (folder / f"{version:020}.json").unlink()
    (folder / "_last_checkpoint").write_text(json.dumps({"version": latest, "size": len(actions), "parts": parts}))
    cuts = [len(actions) * part // parts for part in range(parts + 1)]
    names = [folder / f"{latest:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1)]
    for name, first, end in zip(names, cuts, cuts[1:], strict=False):
        pq.write_table(actions.slice(first, end - first), name)
    return names


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_loads_are_known_from_a_checkpoint_in_several_files(tmp_path: Path, parts: int) -> None:
    table = tmp_path / "landing"
    write_deltalake(str(table), pa.Table.from_pylist([], SCHEMA))
    for load, rows in (("a", 2), ("b", 3), ("c", 4)):
        lands(str(table), load, rows)
    in_parts(table, parts)
    lands(str(table), "b", 9)
    loads.forget()
    assert landed(str(table)) == {"a": 2, "b": 9, "c": 4}


def test_a_checkpoint_of_which_a_part_is_missing_is_passed_over_for_an_older_one(tmp_path: Path) -> None:
    """Whoever wrote it died: beside it lies what another left there."""
    table = tmp_path / "landing"
    folder = table / "_delta_log"
    write_deltalake(str(table), pa.Table.from_pylist([], SCHEMA))
    lands(str(table), "a", 2)
    DeltaTable(str(table)).create_checkpoint()
    (folder / f"{0:020}.json").unlink()
    lands(str(table), "b", 3)
    lands(str(table), "c", 4)
    whole = (folder / f"{1:020}.checkpoint.parquet").read_bytes()
    for part in (1, 2):
        (folder / f"{2:020}.checkpoint.{part:010}.{3:010}.parquet").write_bytes(whole)
    (folder / "half.checkpoint.parquet").write_bytes(whole[:100])
    loads.forget()
    assert landed(str(table)) == {"a": 2, "b": 3, "c": 4}
