"""Which commits deltalake makes as one put of exactly N+1 on S3, and what it does not check.

python -m tests.objects.spike.operations        a line for each operation and each mistake
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from obstore import get

from tests.objects.server import BUCKET, client, options, running

SCHEMA = pa.schema([("day", pa.string()), ("n", pa.int64())])
NOTE = "told"


def own(number: int = 7) -> CommitProperties:
    note = {"userMetadata": NOTE}
    return CommitProperties(max_commit_retries=0, app_transactions=[Transaction("own", number)], custom_metadata=note)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"day": ["2026-01-01"] * len(numbers), "n": list(numbers)}, schema=SCHEMA)


def compact_by_actions(table: DeltaTable) -> None:
    """A compaction as one commit of ours: the files that are there go, one that somebody wrote comes."""
    files = pa.table(table.get_add_actions()).to_pylist()
    gone = [RemoveAction(file["path"], False, 0, file["size_bytes"], {"day": "2026-01-01"}) for file in files]
    came = AddAction("attempt-1/part.parquet", 400, {"day": "2026-01-01"}, 0, False, '{"numRecords": 1}')
    table.create_write_transaction([*gone, came], "append", table.schema(), ["day"], commit_properties=own())


OPERATIONS: Mapping[str, Callable[[DeltaTable], Any]] = {
    "append of files": lambda t: t.create_write_transaction([], "append", t.schema(), ["day"], commit_properties=own()),
    "append of rows": lambda t: write_deltalake(t, rows(9), mode="append", commit_properties=own()),
    "update": lambda t: t.update(predicate="n = 1", updates={"n": "1"}, commit_properties=own()),
    "delete": lambda t: t.delete("n = 1", commit_properties=own()),
    "ADD COLUMN": lambda t: t.alter.add_columns([Field(f"x{time.time_ns()}", "string")], commit_properties=own()),
    "properties": lambda t: t.alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 30 days"}, commit_properties=own()
    ),
    "compaction": lambda t: t.optimize.compact(commit_properties=own()),
    "compaction by actions": compact_by_actions,
    "restore": lambda t: t.restore(0, commit_properties=own()),
    "VACUUM": lambda t: t.vacuum(0, dry_run=False, enforce_retention_duration=False, commit_properties=own()),
}

MISTAKES: Mapping[str, AddAction] = {
    "a file that is not there": AddAction("nowhere.parquet", 10, {"day": "x"}, 0, True, '{"numRecords": 9}'),
    "a size that is wrong": AddAction("nowhere-2.parquet", -3, {"day": "x"}, 0, True, "{}"),
    "statistics of another type": AddAction("nowhere-3.parquet", 3, {"day": "x"}, 0, True, '{"numRecords": "many"}'),
    "statistics that are no JSON": AddAction("nowhere-4.parquet", 3, {"day": "x"}, 0, True, "nonsense"),
    "no partition value": AddAction("nowhere-5.parquet", 3, {}, 0, True, "{}"),
    "a value of no partition column": AddAction("nowhere-6.parquet", 3, {"day": "x", "z": "1"}, 0, True, "{}"),
}


class Place:
    """Tables of one server, each made anew for what is tried on it."""

    def __init__(self, address: str) -> None:
        self.options = options(address)
        self.store = client(address)
        self.tables = 0

    def fresh(self) -> str:
        self.tables += 1
        uri = f"s3://{BUCKET}/t{self.tables}"
        for n in (1, 2, 3):
            write_deltalake(uri, rows(n), mode="append", partition_by=["day"], storage_options=self.options)
        self.open(uri).update(predicate="n = 3", updates={"n": "3"})  # leaves a file to VACUUM
        return uri

    def open(self, uri: str) -> DeltaTable:
        return DeltaTable(uri, storage_options=self.options)

    def newest(self, uri: str) -> tuple[int, list[dict[str, Any]]]:
        """The newest version and its actions, by the objects alone, since a spoilt table does not open."""
        version, text = -1, b""
        while True:
            try:
                name = uri.removeprefix(f"s3://{BUCKET}/")
                text = bytes(get(self.store, f"{name}/_delta_log/{version + 1:020}.json").bytes())
            except FileNotFoundError:
                return version, [json.loads(line) for line in text.splitlines()]
            version += 1


def said(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:70]}"
    return "no error"


def main() -> None:
    with running() as address:
        place = Place(address)
        for name, operation in OPERATIONS.items():
            uri = place.fresh()
            stale = place.open(uri)
            base = stale.version()
            empty = CommitProperties(app_transactions=[Transaction("rival", 1)])
            place.open(uri).create_write_transaction([], "append", stale.schema(), ["day"], commit_properties=empty)
            outcome = said(lambda operation=operation, stale=stale: operation(stale))
            landed = place.newest(uri)[0] - base - 1
            uri = place.fresh()
            before = place.open(uri).version()
            fresh = said(lambda operation=operation, uri=uri: operation(place.open(uri)))
            version, actions = place.newest(uri)
            own_number = any(action.get("txn", {}).get("appId") == "own" for action in actions)
            note = any(action.get("commitInfo", {}).get("userMetadata") == NOTE for action in actions)
            print(f"{name}: from a stale version {landed} commits ({outcome});", end=" ")
            print(f"from the newest {version - before} ({fresh}), number {own_number}, note {note}")
        uri = place.fresh()
        print(
            "create where a table is:",
            said(lambda: DeltaTable.create(uri, SCHEMA, "error", storage_options=place.options)),
        )
        for name, add in MISTAKES.items():
            uri = place.fresh()
            table = place.open(uri)
            outcome = said(
                lambda table=table, add=add: table.create_write_transaction(
                    [add], "append", table.schema(), ["day"], commit_properties=own()
                )
            )
            reopened = said(lambda uri=uri: place.open(uri))
            print(f"{name}: {outcome}; committed {place.newest(uri)[0] > 3}; opened again: {reopened}")
        table = place.open(place.fresh())
        other = Schema.from_arrow(pa.schema([("other", pa.int32())]))
        print("another schema:", said(lambda: table.create_write_transaction([], "append", other, [])))
        uri = place.fresh()
        for number in (9, 3):
            place.open(uri).create_write_transaction(
                [], "append", table.schema(), ["day"], commit_properties=own(number)
            )
            print(f"the number {number}: no error; the log has {place.open(uri).transaction_version('own')}")


if __name__ == "__main__":
    main()
