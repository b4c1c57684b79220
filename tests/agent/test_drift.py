"""A source that is altered during a backfill stops it before the next batch, if the change affects the columns read. No Java."""

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.feeds.backfill import History
from console.agent.resilience.drift import check
from console.errors import RegionError
from console.model.live import Intake, TableState, Version
from console.model.schema import Table
from console.model.step import Backfill

pytestmark = pytest.mark.slow

FIRST = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("size", pa.int32()), ("note", pa.string())])


def altered(place: Path, schema: pa.Schema, *read: str) -> History:
    """A backfill fenced at version 0, and a source that has this schema by now."""
    path = str(place / "landing")
    write_deltalake(path, pa.Table.from_pylist([], FIRST))
    write_deltalake(path, pa.Table.from_pylist([], schema), mode="overwrite", schema_mode="overwrite")
    step = Backfill(
        materialization="parse",
        source="landing",
        target="requests",
        route="replay",
        sql="",
        time="ts",
        rows=1,
        bytes=1,
        days=1,
        batches=1,
        columns=read,
    )
    nothing = cast(Any, None)
    table = Table(name="landing", kind="landing", columns=())
    source = TableState(
        table=table, version=Version(content="", path="landing", columns=()), read="", rows="", values={},
        intake=(Intake("length", ("size",)),),
    )  # fmt: skip
    return History(
        step=step, source=source, source_path=path, target=nothing, target_path="", fence=0, slices=(), writer=nothing
    )


def test_a_column_more_or_another_one_changed_is_nothing_to_stop_for(tmp_path: Path) -> None:
    wider = FIRST.append(pa.field("more", pa.string())).set(3, pa.field("note", pa.binary()))
    check(altered(tmp_path, wider, "id", "ts", "size"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [(FIRST.remove(2), "size was int, is gone"), (FIRST.set(2, pa.field("size", pa.string())), "size was int, is string"),
     (FIRST.set(2, pa.field("length", pa.int32())), "size was int, is gone")],
)  # fmt: skip
def test_what_is_read_and_gone_or_another_type_is_reported_with_a_way_out(
    schema: pa.Schema, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RegionError) as error:
        check(altered(tmp_path, schema, "ID", "Size"))
    assert str(error.value) == f"landing has changed since its fence at version 0: {message}"
    assert error.value.code == "E_DRIFT"
    assert "discard" in error.value.hint


def test_a_renamed_column_is_looked_for_under_its_stored_name(tmp_path: Path) -> None:
    with pytest.raises(RegionError, match="size was int, is gone"):
        check(altered(tmp_path, FIRST.remove(2), "id", "length"))


def test_where_it_is_not_known_what_is_read_every_column_counts(tmp_path: Path) -> None:
    with pytest.raises(RegionError, match="note was string, is binary"):
        check(altered(tmp_path, FIRST.set(3, pa.field("note", pa.binary()))))
