"""Delta table features that a column's type needs: raising a table's protocol for one cannot be undone."""

import re
from collections.abc import Iterable

from console.errors import Problem
from console.model.live import READABLE, TableStats
from console.model.schema import Column, Table
from console.remedy import DropKey, Edit, Elsewhere

FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}  # type → the table feature it needs

_MISSPELT = re.compile(r"double|binary|decimal\(\d+,\s*[1-9]\d*\)")


def raised(table: Table, stats: TableStats | None) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Columns to be added to a managed landing table, and the missing features that they need."""
    if table.kind != "landing" or not table.managed or stats is None:
        return (), ()
    real = {column.name.lower() for column in stats.columns}
    new = tuple(column for column in table.columns if column.name.lower() not in real)
    needing = tuple(column for column in new if set(_needed((column,))) - set(stats.features))
    return needing, tuple(sorted(set(_needed(needing)) - set(stats.features)))


def _needed(columns: Iterable[Column]) -> list[str]:
    return [feature for column in columns for type, feature in FEATURES.items() if type in column.type]


def cut(table: Table, stats: TableStats, region: str) -> list[Problem]:
    """C128, one for each column whose times would be cut."""
    declared = {column.name.lower() for column in table.columns}
    return [
        Problem(
            code="C128",
            message=f"{table.name}.{column} holds times finer than a microsecond in {region}: they would be cut",
            where=table.where,
            node=table.name,
            remedies=(
                Elsewhere(what="have its writer store microseconds and replace those rows"),
                Edit(node=table.name, how="leave the column out of the table's file"),
            ),
        )
        for column in stats.finer
        if column.lower() in declared and not table.managed
    ]


def misspelt(table: Table, stats: TableStats | None, region: str) -> list[Problem]:
    """C129, one for each partition column whose values deltalake, which writes managed landing tables, spells
    unreadably: -1.25 as `-1.-25`, bytes as `\\u0061`, 1e300 with more digits than a file name may have."""
    if not table.managed:
        return []
    columns, by = (table.columns, table.partition_by) if stats is None else (stats.columns, stats.partition_by)
    remedies = (
        Edit(node=table.name, how="partition it by another column or type"),
        DropKey(node=table.name, key="managed", effect="its producers write it"),
    )
    return [
        Problem(
            code="C129",
            message=f"{table.name} in {region} is partitioned by {column.name}, a {column.type}: ingested values would be read back wrong",
            where=table.where,
            node=table.name,
            remedies=remedies,
        )
        for column in columns
        if column.name in by and _MISSPELT.fullmatch(column.type)
    ]


def unreadable(table: Table, stats: TableStats, region: str) -> list[Problem]:
    """C127, one for each feature."""
    remedies = (
        Elsewhere(what="`ALTER TABLE … DROP FEATURE` it there"),
        Elsewhere(what="feed the pipeline from a copy of the table without it"),
    )
    return [
        Problem(
            code="C127",
            message=f"{table.name} in {region} has the table feature {feature}: its rows cannot be followed",
            where=table.where,
            node=table.name,
            remedies=remedies,
        )
        for feature in stats.reader
        if feature not in READABLE
    ]
