"""The versions of one landing table, and the ids of batches and loads in them: rows accepted by one count as accepted in all."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from console import crash
from console.agent.store import commits, log, log_files, open_tables, write_lock
from console.errors import RegionError
from console.model.live import Release

PER_COMMIT = 5000  # ids carried over by one commit
LOCK_SECONDS = 60.0


def versions_of(releases: Iterable[Release], path: str, *, stored_alike: bool = False) -> tuple[str, ...]:
    """Version paths of the landing table at `path`, that one first; those of all stored releases.

    stored_alike  only those that store every row in the same columns
    """
    pairs = [
        (relay.older, newer.version.path)
        for release in releases
        for relay in release.relays
        if (newer := release.table(relay.table)) is not None and (relay.stored_alike or not stored_alike)
    ]
    known = {path: None}
    while more := [other for pair in pairs if known.keys() & set(pair) for other in pair if other not in known]:
        known |= dict.fromkeys(more)
    return tuple(known)


def has_taken(table: str, batch: str) -> bool:
    """Whether a batch was committed to this version. table: absolute path"""
    with suppress(TableNotFoundError), open_tables.opened(table) as opened:
        return opened.transaction_version(f"ingest/{opened.metadata().id}/{batch}") is not None
    return False


def carry_ids(source: str, target: str) -> int:
    """Commit the ids of all batches and loads in a version's log to another one's, without rows; safe to repeat.

    returns  number of ids that the target lacked
    """
    commits.own(target)
    with open_tables.opened(target) as opened:
        prefix = f"ingest/{opened.metadata().id}/"
        wanted = {prefix + rest: number for rest, number in _ids(source).items()}
        missing = [(id, number) for id, number in wanted.items() if opened.transaction_version(id) is None]
    for start in range(0, len(missing), PER_COMMIT):
        with write_lock.exclusive(target, seconds=LOCK_SECONDS) as locked:
            if not locked:
                raise RegionError(f"{target}: locked by Spark for {LOCK_SECONDS:.0f} s", hint="try again")
            crash.point("before-commit-ids")
            _commit(target, missing[start : start + PER_COMMIT])
            crash.point("after-commit-ids")
    return len(missing)


def _commit(target: str, ids: list[tuple[str, int]]) -> None:
    import pyarrow as pa

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        nothing = pa.schema(table.schema().to_arrow()).empty_table()
        write_deltalake(table, nothing, mode="append", commit_properties=properties)

    commits.commit(target, write, note={"kind": "ids"}, numbers=tuple(Transaction(id, number) for id, number in ids))


def _ids(table: str) -> dict[str, int]:
    """App ids of a table's intake, without prefix and table id → number; from its newest checkpoint and the commits since."""
    ids: dict[str, int] = {}
    prefix, latest = f"ingest/{open_tables.table_id(table)}/", log.latest_version(table)
    version, transactions = at_checkpoint(table, latest)
    for item in (*transactions, *(commit.txn for commit in log.commits(table, version + 1, latest))):
        ids |= {id.removeprefix(prefix): number for id, number in item.items() if id.startswith(prefix)}
    return ids


def at_checkpoint(table: str, latest: int) -> tuple[int, tuple[dict[str, int], ...]]:
    """The version of the newest checkpoint, -1 for none, and the app transactions that it holds."""
    version, files = _checkpoint(table, latest)
    return version, tuple(transactions for file in files for transactions in _transactions(file))


def _checkpoint(table: str, latest: int) -> tuple[int, list[Path]]:
    """(version, files) of the newest complete checkpoint up to a version; (-1, []) if there is none."""
    checkpoints: dict[int, list[Path]] = {}
    for path in (log_files.root_of(table) / "_delta_log").glob("*.checkpoint*.parquet"):
        stem = path.name.partition(".")[0]
        if stem.isdigit() and int(stem) <= latest:
            checkpoints.setdefault(int(stem), []).append(path)
    for version, paths in sorted(checkpoints.items(), reverse=True):
        single = [path for path in paths if path.name.count(".") == 2]
        if single:
            return version, single
        parts = {path.name.split(".")[3] for path in paths if path.name.count(".") == 4}
        if parts and len(paths) == int(next(iter(parts))):
            return version, paths
    return -1, []


def _transactions(file: Path) -> Iterator[dict[str, int]]:
    """The app transactions in a checkpoint."""
    import pyarrow.parquet as pq

    with file.open("rb") as source:
        parquet = pq.ParquetFile(source)
        if "txn" not in parquet.schema_arrow.names:
            return
        for batch in parquet.iter_batches(columns=["txn.appId", "txn.version"]):
            transactions = batch.column("txn")
            yield {entry["appId"]: entry["version"] for entry in transactions.to_pylist() if entry and entry["appId"]}
