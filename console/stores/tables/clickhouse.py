"""Descriptions of ClickHouse tables and everything that depends on them, from the system tables."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from console.propagation.clickhouse.dependents.declared import arguments, head, uses
from console.propagation.clickhouse.types import is_nullable
from console.propagation.tables import Dependent, Overlay, Reader, StoreColumn, StoreTable
from console.propagation.translate.operations import MARK, between

Row = Mapping[str, Any]
Query = Callable[[str, Mapping[str, Any]], list[dict[str, Any]]]
_NAME: Final = r"(?:`(?:[^`\\]|\\.)*`|\w+)"
_TO: Final = re.compile(rf"^CREATE MATERIALIZED VIEW\s+{_NAME}(?:\.{_NAME})?\s+TO\s+({_NAME}\.{_NAME})")
_OVERLAYS: Final = ("Buffer", "Distributed", "Merge", "Dictionary")
_EXCHANGING: Final = ("Atomic", "Replicated", "Shared")
_LEVELS: Final = 20  # of views on views
_SYSTEM: Final = "('system', 'INFORMATION_SCHEMA', 'information_schema')"


@dataclass(frozen=True)
class ServerSchema:
    """Everything read from a server, by qualified names.

    standing  views and tables without rows of their own;  tables  the requested ones, and their views' targets
    """

    standing: Mapping[str, Row]
    tables: Mapping[str, Row]
    columns: Mapping[str, Sequence[Row]]

    def table(self, name: str, above: tuple[str, ...] = ()) -> StoreTable:
        """above: the tables whose views lead here; they are not described again"""
        row, mine = self.tables[name], self.columns.get(name, [])
        feeds = set(row["feeds"])
        materialized = [view for view in self.standing.values() if view["engine"] == "MaterializedView"]
        dependents = tuple(self._dependent(view, (*above, name)) for view in materialized if view["whole"] in feeds)
        plain = [view for view in self.standing.values() if view["engine"] == "View"]
        # a materialized view on another table may join this one, or read what a view on this one writes
        others = [view for view in materialized if view["whole"] not in feeds]
        return StoreTable(
            name=name,
            columns=stored(mine),
            key=_key(mine, row),
            dependents=dependents,
            marks=_marks(mine),
            readers=tuple(self._reader(view) for view in (*plain, *others)),
            uses=uses(row["create_table_query"]) if row["engine"].endswith("MergeTree") else (),
            overlays=tuple(self._overlays(name, row)),
            engine=row["engine"],
        )

    def _dependent(self, view: Row, above: tuple[str, ...]) -> Dependent:
        target = view["target"]
        mine = self.columns.get(target, [])
        keys = tuple(row["name"] for row in mine if _is_key(row))
        fixed = (
            ""
            if view["exchanges"]
            else f"its database has the engine {view['database_engine']}, which does not support EXCHANGE"
        )
        return Dependent(
            name=view["whole"],
            target=target,
            select=view["as_select"],
            columns=stored(mine),
            key=keys,
            own=stored(self.columns.get(view["whole"], [])),
            head=head(view["create_table_query"]),
            comment=view["comment"],
            fixed=fixed,
            below=self.table(target, above) if target in self.tables and target not in above else None,
        )

    def _reader(self, view: Row) -> Reader:
        return Reader(
            name=view["whole"],
            select=view["as_select"],
            own=stored(self.columns.get(view["whole"], [])),
            head=head(view["create_table_query"]),
            comment=view["comment"],
            stored=view["engine"] == "MaterializedView",
        )

    def _overlays(self, name: str, table: Row) -> Iterable[Overlay]:
        reading = set(table["dictionaries"])
        for row in self.standing.values():
            if row["engine"] in _OVERLAYS and (row["whole"] in reading or stands_over(row, name)):
                columns = stored(self.columns.get(row["whole"], []))
                yield Overlay(row["whole"], row["engine"], columns, row["create_table_query"])


def described(query: Query, database: str, places: Collection[str]) -> dict[str, StoreTable]:
    """The existing tables among some of a database, by their names there."""
    standing = _standing(query)
    tables: dict[str, Row] = {}
    wanted = {f"{database}.{place}" for place in places}
    for _ in range(_LEVELS):
        wanted -= tables.keys()
        if not wanted:
            break
        level = _tables(query, wanted)
        tables |= level
        wanted = {standing[view]["target"] for row in level.values() for view in row["feeds"] if view in standing} - {
            ""
        }
    columns = _columns(query, {*tables, *standing})
    schema = ServerSchema(standing, tables, columns)
    return {place: schema.table(f"{database}.{place}") for place in places if f"{database}.{place}" in tables}


def behind(rows: Sequence[Row], here: str) -> tuple[str, str] | None:
    """The first (host, table) whose columns differ from this host's, among tables that both have.

    rows  (host, table, columns) from every host; tables that only one host has are ignored
    """
    mine = {row["table"]: row["columns"] for row in rows if row["host"] == here}
    others = sorted(
        (row["host"], row["table"]) for row in rows if row["columns"] != mine.get(row["table"], row["columns"])
    )
    return others[0] if others else None


def _standing(query: Query) -> dict[str, Row]:
    rows = query(
        "SELECT t.database AS database, t.name AS name, t.engine AS engine, t.engine_full AS engine_full,"
        " t.as_select AS as_select, t.comment AS comment, t.create_table_query AS create_table_query,"
        " d.engine AS database_engine FROM system.tables AS t LEFT JOIN system.databases AS d ON d.name = t.database"
        f" WHERE t.engine IN ('MaterializedView', 'View', 'Buffer', 'Distributed', 'Merge', 'Dictionary')"
        f" AND t.database NOT IN {_SYSTEM} ORDER BY database, name",
        {},
    )
    for row in rows:
        to = _TO.match(row["create_table_query"])
        row["target"] = bare(to[1]) if to else ""
        row["whole"] = f"{row['database']}.{row['name']}"
        row["exchanges"] = row["database_engine"].startswith(_EXCHANGING)
    return {row["whole"]: row for row in rows}


def _tables(query: Query, names: Collection[str]) -> dict[str, Row]:
    rows = query(
        "SELECT concat(database, '.', name) AS whole, engine, sorting_key, create_table_query, dependencies_database,"
        " dependencies_table, loading_dependent_database, loading_dependent_table FROM system.tables"
        " WHERE name IN {names:Array(String)} AND whole IN {wholes:Array(String)}",
        _named(names),
    )
    for row in rows:
        row["feeds"] = _pairs(row["dependencies_database"], row["dependencies_table"])
        row["dictionaries"] = _pairs(row["loading_dependent_database"], row["loading_dependent_table"])
    return {row["whole"]: row for row in rows}


def _columns(query: Query, tables: Collection[str]) -> dict[str, list[Row]]:
    """Qualified table name → its columns' rows, in order."""
    rows = query(
        "SELECT concat(database, '.', table) AS whole, name, type, default_kind, default_expression, comment,"
        " is_in_partition_key, is_in_sorting_key, is_in_sampling_key FROM system.columns"
        " WHERE table IN {names:Array(String)} AND whole IN {wholes:Array(String)} ORDER BY whole, position",
        _named(tables),
    )
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        by_table.setdefault(row["whole"], []).append(row)
    return by_table


def _named(names: Collection[str]) -> Mapping[str, Any]:
    return {"names": sorted({name.partition(".")[2] for name in names}), "wholes": sorted(names)}


def _pairs(databases: Sequence[str], tables: Sequence[str]) -> list[str]:
    return [f"{database}.{table}" for database, table in zip(databases, tables, strict=True)]


def stands_over(row: Row, name: str) -> bool:
    """Whether a table without rows of its own reads another, by its engine's arguments."""
    database, _, table = name.partition(".")
    given = arguments(row["engine_full"])
    match row["engine"]:
        case "Buffer":
            return given[:2] == (database, table)
        case "Distributed":
            return given[1:3] == (database, table)
        case "Merge" if row["whole"] != name:
            place = given[1:] if given[:1] == ("REGEXP",) else given
            databases, tables = place[0], place[1]
            there = re.search(databases, database) if given[:1] == ("REGEXP",) else databases == database
            return bool(there) and re.search(tables, table) is not None
        case _:
            return False


def stored(rows: Sequence[Row]) -> tuple[StoreColumn, ...]:
    return tuple(
        StoreColumn(
            name=row["name"],
            type=row["type"],
            nullable=is_nullable(row["type"]),
            default=row["default_expression"],
            kind=row["default_kind"],
            comment=row["comment"],
        )
        for row in rows
    )


def _marks(rows: Sequence[Row]) -> tuple[str, ...]:
    marked = {row["comment"].removeprefix(MARK) for row in rows if row["comment"].startswith(MARK)}
    moving_names = between(stored(rows))
    moving = {row["comment"].removeprefix(MARK) for row in rows if row["name"] in moving_names}
    return tuple(sorted(marked - moving))


def _is_key(row: Row) -> bool:
    return bool(row["is_in_sorting_key"] or row["is_in_partition_key"] or row["is_in_sampling_key"])


def _key(rows: Sequence[Row], table: Row) -> tuple[str, ...]:
    """Sorting columns in their order, then those that only partition or sample."""
    words = re.findall(_NAME, table["sorting_key"])
    rank = {bare(word): place for place, word in reversed(list(enumerate(words)))}
    sorting = sorted((row["name"] for row in rows if row["is_in_sorting_key"]), key=lambda name: rank.get(name, 0))
    return (*sorting, *(row["name"] for row in rows if _is_key(row) and not row["is_in_sorting_key"]))


def bare(name: str) -> str:
    """A qualified name without its quotes."""
    return ".".join(
        re.sub(r"\\(.)", r"\1", part[1:-1]) if part.startswith("`") else part for part in re.findall(_NAME, name)
    )
