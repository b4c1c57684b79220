"""Differences between a region's real tables and its own live release, from manual changes."""

from collections.abc import Iterable
from functools import partial

from console.model.created import changed
from console.model.landing import is_reserved
from console.model.live import Live, TableState, TableStats
from console.model.plan import Drift
from console.model.schema import Column
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.cache.releases import shared_release
from console.planning.review.baseline import table_shapes
from console.planning.sql.tree import kind

# properties that no table of a pipeline may be given by hand (docs/design.md, rules 1 and 9), and how to undo them
_FOREIGN = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableTypeWidening": "true",
    "delta.columnMapping.mode": "",
    "delta.setTransactionRetentionDuration": "",
    "delta.appendOnly": "true",
}
_FEATURES = {"deletionVectors", "rowTracking", "inCommitTimestamp", "typeWidening", "columnMapping", "clustering", "v2Checkpoint"}  # fmt: skip
_DRIFTS = Memo[Iterable[Drift]](100_000)


def drift(live: Live, cache: PlannerCache) -> tuple[Drift, ...]:
    """Table by table, in the release's order; () if nothing was altered or nothing is live."""
    drifts: list[Drift] = []
    shared = shared_release(live.release, cache) if live.release else None
    shapes = table_shapes(live, cache)
    for state in live.release.tables if live.release else ():
        stats = live.table(state.table.name)
        if stats is None:
            drifts += _missing_table(state)
            continue
        recorded = (shared.table(state.table.name) if shared else None) or state
        drifts += cache.by_identity(_DRIFTS, partial(_table, recorded, stats), recorded, shapes[stats.name])
    return tuple(drifts)


def _missing_table(state: TableState) -> list[Drift]:
    name = state.table.name
    if state.table.kind == "landing":
        adopt = f"drop {name} from the pipeline, with what it feeds"
        repair = "bring the table back from a copy, or let its producer create it"
    else:
        adopt = f"drop {name} from the pipeline"
        repair = "console rollback, if the previous release has another version; else change its query to rebuild it"
    return [Drift(table=name, what="missing", name="", said=state.version.path, found="", adopt=adopt, repair=repair)]


def _table(state: TableState, stats: TableStats) -> list[Drift]:
    name, landing = state.table.name, state.table.kind == "landing"
    recorded = {column.name: column for column in state.version.columns}
    actual = {column.name: column for column in stats.columns}
    drifts: list[Drift] = []
    for column in state.version.columns:
        if column.name not in actual:
            drifts.append(_missing_column(state, column))
        elif _type(actual[column.name]) != _type(column):
            drifts.append(_retyped(state, column, actual[column.name]))
    for column in stats.columns:
        if column.name not in recorded and not (landing and is_reserved(column.name)):
            adopt = f"declare {column.name} in tables/{name}.yaml" + ("" if landing else " and compute it in its query")
            repair = f"there: ALTER TABLE {name} DROP COLUMN, or leave it: nothing of ours reads it"
            drifts.append(
                Drift(
                    table=name, what="column", name=column.name, said="", found=column.type, adopt=adopt, repair=repair
                )
            )
    if stats.partition_by != state.version.partition_by:
        adopt = f"write partition_by: [{', '.join(stats.partition_by)}] in tables/{name}.yaml"
        repair = (
            f"there: RESTORE TABLE {name} to the version before, then console follow" if landing else _rebuild(name)
        )
        drifts.append(
            Drift(
                table=name,
                what="partitioning",
                name="",
                said=_by(state.version.partition_by),
                found=_by(stats.partition_by),
                adopt=adopt,
                repair=repair,
            )
        )
    return drifts if landing else drifts + _settings_drift(state, stats)


def _missing_column(state: TableState, column: Column) -> Drift:
    name = state.table.name
    adopt = f"drop {column.name} from tables/{name}.yaml and from what reads it"
    repair = f"there: ALTER TABLE {name} ADD COLUMN {column.name} {column.type}, older rows read NULL"
    return Drift(
        table=name,
        what="column",
        name=column.name,
        said=column.type,
        found="",
        adopt=adopt,
        repair=repair if state.table.kind == "landing" else _rebuild(name),
    )


def _retyped(state: TableState, column: Column, actual: Column) -> Drift:
    name = state.table.name
    adopt = f"declare {column.name} as {actual.type} in tables/{name}.yaml"
    repair = "there: RESTORE TABLE to the version before" if state.table.kind == "landing" else _rebuild(name)
    return Drift(
        table=name, what="type", name=column.name, said=column.type, found=actual.type, adopt=adopt, repair=repair
    )


def _settings_drift(state: TableState, stats: TableStats) -> list[Drift]:
    """Settings that the table was not created with, and features that no table of a pipeline has."""
    name, drifts = state.table.name, []
    for key, was, now in (
        changed(state.version.settings, stats.properties) if state.version.settings else _foreign_settings(stats)
    ):
        undo = f"SET TBLPROPERTIES ('{key}' = '{was}')" if was else f"UNSET TBLPROPERTIES ('{key}')"
        adopt = "none: a feed cannot work with it" if key in _FOREIGN else "none: it is what the table was created with"
        drifts.append(
            Drift(
                table=name,
                what="property",
                name=key,
                said=was,
                found=now,
                adopt=adopt,
                repair=f"there: ALTER TABLE {name} {undo}",
            )
        )
    for feature in stats.features:
        if feature in _FEATURES:
            repair = f"there: ALTER TABLE {name} DROP FEATURE {feature}, or {_rebuild(name)}"
            drifts.append(
                Drift(
                    table=name,
                    what="feature",
                    name=feature,
                    said="",
                    found="on",
                    adopt="none: a feed cannot work with it",
                    repair=repair,
                )
            )
    return drifts


def _foreign_settings(stats: TableStats) -> list[tuple[str, str, str]]:
    """For a table whose release records no settings (0.1.0): those that break a feed or make it lose its position."""
    return [
        (key, "", value)
        for key, value in stats.properties
        if key in _FOREIGN and value.lower() != "none" and _FOREIGN[key] in ("", value.lower())
    ]


def _rebuild(name: str) -> str:
    return f"change the query of {name} to rebuild it, or console rollback to a release with another version of it"


def _by(columns: tuple[str, ...]) -> str:
    return f"by {', '.join(columns)}" if columns else "not partitioned"


def _type(column: Column) -> str:
    try:
        return kind(column.type)
    except ValueError:
        return column.type
