"""What the agent checks of files that Spark wrote, before it commits them: nobody else does. No Java."""

from typing import Any

import pytest

from console.agent.store.file_action import FileAction, added_file, check_columns
from console.errors import RegionError


def schema(*fields: tuple[str, Any], nullable: bool = True) -> dict[str, Any]:
    columns = [{"name": name, "type": kind, "nullable": nullable, "metadata": {}} for name, kind in fields]
    return {"type": "struct", "fields": columns}


def items(kind: Any, contains_null: bool) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": contains_null}


STORED = schema(("id", "string"), ("n", "long"), ("tags", items(schema(("a", "integer")), True)))


@pytest.mark.parametrize(
    "written",
    [
        STORED,
        schema(("n", "long"), ("id", "string")),  # a column that a table got later
        schema(("id", "string"), ("tags", items(schema(("a", "integer"), nullable=False), False)), nullable=False),
    ],
)
def test_rows_in_a_tables_columns_are_taken_whatever_may_be_null(written: dict[str, Any]) -> None:
    check_columns("t", STORED, written)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (schema(("id", "string"), ("n", "integer")), "rows with n integer cannot be written, since it is long there"),
        (schema(("id", "string"), ("m", "long")), "rows with m long cannot be written, since it is missing there"),
        (schema(("tags", items(schema(("b", "integer")), True))), "rows with tags .* cannot be written"),
        (schema(("tags", items(schema(("a", "long")), True))), "rows with tags .* cannot be written"),
    ],
)
def test_rows_in_other_columns_are_refused_by_their_name(written: dict[str, Any], why: str) -> None:
    with pytest.raises(RegionError, match=why) as error:
        check_columns("t", STORED, written)
    assert error.value.code == "E_COLUMNS"


def test_a_files_record_is_taken_over_with_its_raw_path_and_a_blank_as_null() -> None:
    add = {
        "path": "day=2026-01-01/p=x%2520y%252F/part-0.parquet", "size": 7, "modificationTime": 5, "dataChange": True,
        "partitionValues": {"day": "2026-01-01", "p": ""}, "stats": '{"numRecords":1}', "tags": {},
    }  # fmt: skip
    assert added_file("t", {"add": add}) == FileAction(
        name="day=2026-01-01/p=x%20y%2F/part-0.parquet",
        bytes=7,
        values=(("day", "2026-01-01"), ("p", None)),
        modified=5,
        stats='{"numRecords":1}',
    )
    for other in ({"remove": {"path": "a"}}, {"add": {**add, "deletionVector": {"storageType": "u"}}}, {"cdc": {}}):
        with pytest.raises(RegionError, match="Delta wrote something else than a data file"):
            added_file("t", other)
