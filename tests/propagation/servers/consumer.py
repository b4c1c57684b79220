"""A consumer: carries PostgreSQL's replication stream into every store of a project, with console's library.

    python -m tests.propagation.servers.consumer PROJECT DSN SLOT PUBLICATION       until it gets SIGTERM

It keeps no schema of its own: each package goes into what the store's table has at that moment.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow
from deltalake import write_deltalake

from console.errors import ConsoleError
from console.project import load
from console.propagation.tables import StoreTable
from console.stores import delta, iceberg
from console.stores.consumer import Left, Renaming, crossed, defaults, fit, renamed, renamings
from console.stores.delta import Delta
from console.stores.files import ReplicationConfig, Site, read_plan, sites
from console.stores.iceberg import Iceberg
from console.stores.lakes.constants import scalar
from tests.propagation.servers.stream import Package, Relation, Stream

RETRY_SECONDS = 90


class Sink:
    """One store, and what the stream has told about each table's names so far."""

    def __init__(self, plan: ReplicationConfig, site: Site) -> None:
        self._site, self._plan = site, plan
        self.store: Any = site.open()
        self._left = Left(self.store)
        self._names: dict[str, Relation] = {}
        self._seen: dict[str, set[str]] = {}

    def take(self, package: Package) -> None:
        schema, table = package.relation.table.split(".")
        entry = self._plan.replication.find(schema, table)
        assert entry is not None
        place = self._site.target.place(entry)
        until = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                if self._put(place, package):
                    break
                until = time.monotonic() + RETRY_SECONDS  # a store that renames columns is no failing one
            except ConsoleError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.05)
        self._left.flush()

    def _put(self, place: str, package: Package) -> bool:
        """Insert; False where it must be done again."""
        records = self.store.records()
        known = renamings(records, place)
        handle, target = self._look(place, [renaming.migration for renaming, _ in known])
        columns = package.relation.columns
        seen = self._follow(place, package.relation, [renaming for renaming, _ in known])
        fitted = fit(columns, target, renamed(known, seen, target), defaults(records, place))
        if fitted.waits:
            return False
        index = {name: columns.index(name) for name, _ in fitted.insert}
        names = [there for _, there in fitted.insert] + ["_version", "_deleted"]
        rows = [[*(row[index[here]] for here, _ in fitted.insert), rank, gone] for row, gone, rank in package.rows]
        missing = {} if self._site.target.kind == "clickhouse" else dict(fitted.missing)
        with self.store._client_errors():  # also of a catalog that another process has locked
            INSERT[self._site.target.kind](handle, place, names, rows, missing)
        if self._site.target.kind == "clickhouse" and self.store.describe([place])[place] != target:
            return False
        self._left.add(place, fitted, len(rows))
        return True

    def _look(self, place: str, known: list[str]) -> tuple[Any, StoreTable]:
        """What to append to, and how it looks: of one moment."""
        match self.store:
            case Iceberg():
                table = self.store.table(place)
                return table, iceberg.described(place, table)
            case Delta():
                table = self.store.table(place)
                return table, delta.described(place, table, known)
            case _:
                return self.store, self.store.describe([place])[place]

    def _follow(self, place: str, relation: Relation, known: list[Renaming]) -> set[str]:
        seen = self._seen.setdefault(place, set())
        before = self._names.get(place)
        if before is None or (before.columns, before.types) != (relation.columns, relation.types):
            old = dict(zip(before.columns, before.types, strict=True)) if before is not None else {}
            new = dict(zip(relation.columns, relation.types, strict=True))
            retyped = {name for name in old.keys() & new.keys() if old[name] != new[name]}
            left = [renaming for renaming in known if renaming.migration not in seen]
            seen |= crossed(before.columns if before is not None else (), relation.columns, left, retyped)
        self._names[place] = relation
        return seen


Rows = list[list[Any]]


def into_clickhouse(store: Any, place: str, names: list[str], rows: Rows, missing: Mapping[str, str]) -> None:
    assert not missing
    store._open().insert(place, rows, column_names=names, database=store.database)


def into_iceberg(table: Any, place: str, names: list[str], rows: Rows, missing: Mapping[str, str]) -> None:
    table.append(_arrow(table.schema().as_arrow(), names, rows, missing))


def into_delta(table: Any, place: str, names: list[str], rows: Rows, missing: Mapping[str, str]) -> None:
    write_deltalake(table, _arrow(pyarrow.schema(table.schema().to_arrow()), names, rows, missing), mode="append")


def _arrow(schema: Any, names: list[str], rows: Rows, missing: Mapping[str, str]) -> Any:
    older = {name: scalar(literal, schema.field(name).type).as_py() for name, literal in missing.items()}
    data = [{**older, **dict(zip(names, row, strict=True))} for row in rows]
    return pyarrow.Table.from_pylist(data, schema=schema)


INSERT: dict[str, Callable[[Any, str, list[str], Rows, Mapping[str, str]], None]] = {
    "clickhouse": into_clickhouse,
    "iceberg": into_iceberg,
    "delta": into_delta,
}


def main(root: str, dsn: str, slot: str, publication: str) -> None:
    ended = False

    def end(*_: Any) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()  # its starter is gone
    project, plan = load(Path(root)), read_plan(Path(root), None)
    sinks = [Sink(plan, site) for site in sites(plan, project.regions)]
    stream = Stream(dsn, slot, publication)
    print("ready", flush=True)
    for package in stream.packages():
        if package is None:
            if ended:
                break
            continue
        for sink in sinks:
            sink.take(package)
        if package.end:
            stream.confirm(package.end)
            print(package.end, flush=True)
    stream.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
