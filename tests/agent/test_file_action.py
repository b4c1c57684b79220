"""A data file's entry in the log, from what Delta has said of it."""

import pytest

from console.agent.store.file_action import FileAction, added_file
from console.errors import RegionError

ADD = {"path": "part=a%20b/f%25.parquet", "size": 7, "partitionValues": {}, "modificationTime": 5, "stats": "{}"}


def test_a_blank_in_a_partition_is_null_by_the_protocol_and_is_committed_as_null() -> None:
    values = {"part": "", "kept": "a b", "none": None}
    action = added_file("t", {"add": {**ADD, "partitionValues": values}}, "attempt-1/")
    assert action == FileAction(
        name="attempt-1/part=a b/f%.parquet", bytes=7, values=(("part", None), ("kept", "a b"), ("none", None)),
        modified=5, stats="{}",
    )  # fmt: skip


@pytest.mark.parametrize(
    "action", [{"add": {**ADD, "deletionVector": {"storageType": "u"}}}, {"remove": {"path": "f.parquet"}}]
)
def test_nothing_but_a_whole_file_is_committed(action: dict[str, object]) -> None:
    with pytest.raises(RegionError) as refused:
        added_file("t", action)
    assert refused.value.code == "E_DV"
