"""Which of two versions of a landing table a line is of: decided by the keys of its object, not by its text. No Java."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.ingest.other_shapes import OtherShape, SentLines, ShapedTable, stored_rows
from console.agent.ingest.shapes import shapes_of
from tests.agent.test_landing_shapes import state

pytestmark = pytest.mark.slow

OWN = '{"id": "a", "cents": "5"}'
OLDER = '{"id": "b", "price": "0.05"}'


def version(path: Path, *columns: str) -> ShapedTable:
    write_deltalake(path, pa.schema([(name, pa.string()) for name in columns]).empty_table())
    opened = DeltaTable(path)
    return ShapedTable(opened, shapes_of(state(dict.fromkeys(columns, "string")), (), columns))


@pytest.mark.parametrize(
    ("line", "own"),
    [
        (OWN, True),
        (OLDER, False),
        ('{"id": "c", "note": "cents"}', False),
        ('{"id": "d", "\\u0063ents": "5"}', True),
    ],
)
def test_a_line_without_the_keys_of_the_live_version_is_of_the_other(tmp_path: Path, line: str, own: bool) -> None:
    live = version(tmp_path / "live", "id", "note", "cents")
    other = OtherShape(
        version=version(tmp_path / "other", "id", "note", "price"), table="landing", sql="", keys=("cents",)
    )
    sent = SentLines(table="landing", events=[line], numbers=None)
    assert stored_rows(live, [other], sent, None).num_rows == own
