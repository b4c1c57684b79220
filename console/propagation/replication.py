"""The replication of a pipeline: PostgreSQL tables, stores, and the names there. Frozen values.

    # plans/<pipeline>/replication.yaml
    schema: public                       the schema of names written without one
    tables:
      issues:                            an empty entry has only defaults
        ignore: [title_html]             columns that no store gets
        name: work_items                 its name in the stores
        extra: [traversal_path]          columns that only the stores have
        loose: [state]                   columns where a store may hold no NULL although PostgreSQL does
      audit.events: {targets: {clickhouse: events_log}}
    stores:
      clickhouse: {kind: clickhouse, table: "siphon_{table}", extra: [_siphon_replicated_at, _siphon_deleted]}
      lake: {kind: iceberg, table: "app.{table}"}
      raw: {kind: delta, pipeline: web}

A store's further keys (its address, catalog, folder, secrets) are `Target.options`, for its client.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.errors import DataError
from console.propagation.dialects import DIALECTS
from console.propagation.dialects.dialect import Dialect
from console.propagation.migration import Migration
from console.propagation.tables import ColumnStorage


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicated:
    """One replicated table.

    name     in the stores, if it differs from PostgreSQL's
    targets  store → the whole name there, if no pattern fits
    """

    schema: str
    table: str
    name: str = ""
    ignore: frozenset[str] = frozenset()
    extra: frozenset[str] = frozenset()
    loose: frozenset[str] = frozenset()
    targets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One store.

    kind     one of `DIALECTS`
    table    pattern of a table's name there: `{table}` and `{schema}` are filled in
    extra    bookkeeping columns that every table has there
    options  how it is reached, as written
    kept     ClickHouse: table there → the storage settings of its columns
    """

    name: str
    kind: str
    table: str = "{table}"
    extra: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, tuple[ColumnStorage, ...]] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.kind]

    def place(self, table: Replicated) -> str:
        """A table's name in this store."""
        pattern = table.targets.get(self.name, self.table)
        return pattern.replace("{table}", table.name or table.table).replace("{schema}", table.schema)


@dataclass(frozen=True, slots=True)
class Replication:
    """The whole file."""

    tables: tuple[Replicated, ...]
    stores: tuple[Target, ...] = ()
    schema: str = "public"

    def find(self, schema: str, table: str) -> Replicated | None:
        return next((entry for entry in self.tables if (entry.schema, entry.table) == (schema, table)), None)

    def concerns(self, migration: Migration) -> str:
        """Why this replication ignores a migration, or ""."""
        entry = self.find(migration.schema, migration.table)
        if entry is None:
            return "replication.yaml does not name the table"
        if migration.columns <= entry.ignore:
            return "replication.yaml ignores the column"
        return ""


@dataclass(eq=False)
class UnfitKey(DataError):
    """A key of the file, or its value, that does not fit.

    keys  those that lead to it; none for the file as a whole
    """

    keys: tuple[str, ...] = field(default=(), kw_only=True)


def from_data(data: Mapping[str, Any]) -> Replication:
    """A replication from the values of its file, as read by a safe YAML reader.

    raises  UnfitKey
    """
    _known(data, (), {"schema", "tables", "stores"})
    schema = _text(data.get("schema") or "public", ("schema",))
    tables = _mapping(data.get("tables"), ("tables",))
    stores = _mapping(data.get("stores"), ("stores",))
    entries = tuple(_table(name, entry, schema) for name, entry in tables.items())
    return Replication(entries, tuple(_target(name, entry) for name, entry in stores.items()), schema)


def _table(name: str, data: Any, schema: str) -> Replicated:
    path = ("tables", name)
    entry = _mapping(data, path)
    _known(entry, path, {"name", "ignore", "extra", "loose", "targets"})
    before, dot, after = name.rpartition(".")
    targets = {
        key: _text(value, (*path, "targets", key))
        for key, value in _mapping(entry.get("targets"), (*path, "targets")).items()
    }
    return Replicated(
        schema=before if dot else schema,
        table=after,
        name=_text(entry.get("name") or "", (*path, "name"), empty=True),
        ignore=_names(entry.get("ignore"), (*path, "ignore")),
        extra=_names(entry.get("extra"), (*path, "extra")),
        loose=_names(entry.get("loose"), (*path, "loose")),
        targets=targets,
    )


def _target(name: str, data: Any) -> Target:
    path = ("stores", name)
    entry = _mapping(data, path)
    if entry.get("kind") not in tuple(DIALECTS):
        raise _unfit((*path, "kind"), f"expected {', '.join(DIALECTS)}")
    options = {key: value for key, value in entry.items() if key not in ("kind", "table", "extra")}
    table = _text(entry.get("table") or "{table}", (*path, "table"))
    return Target(
        name=name, kind=entry["kind"], table=table, extra=_names(entry.get("extra"), (*path, "extra")), options=options
    )


def _known(data: Mapping[str, Any], path: tuple[str, ...], keys: Iterable[str]) -> None:
    if strange := sorted(set(data) - set(keys)):
        raise _unfit(path, f"unknown key {strange[0]!r:.60}", hint=f"known keys: {', '.join(sorted(keys))}")


def _mapping(data: Any, path: tuple[str, ...]) -> Mapping[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise _unfit(path, "expected keys and values")
    return data


def _names(data: Any, path: tuple[str, ...]) -> frozenset[str]:
    if data is None:
        return frozenset()
    if not isinstance(data, list) or not all(isinstance(name, str) and name for name in data):
        raise _unfit(path, "expected a list of column names")
    return frozenset(data)


def _text(data: Any, path: tuple[str, ...], *, empty: bool = False) -> str:
    if not isinstance(data, str) or not (data or empty):
        raise _unfit(path, "expected a text")
    return data


def _unfit(keys: tuple[str, ...], message: str, hint: str = "") -> UnfitKey:
    return UnfitKey(f"{'.'.join(keys) or 'replication'}: {message}", keys=keys, hint=hint)
