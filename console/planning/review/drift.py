"""Where a region's real tables are not what its own live release says: somebody altered them by hand."""

from console.model.created import changed
from console.model.live import Live, TableState, TableStats
from console.model.plan import Drift
from console.model.schema import Column
from console.planning.cache.same import shared_release
from console.planning.review.baseline import TableKey, table_key
from console.planning.sql.tree import kind

# what no table of a pipeline may be given by hand (docs/design.md, rules 1 and 9), and what undoes it
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
_MOST = 100_000
_seen: dict[
    tuple[int, TableKey], tuple[TableState, list[Drift]]
] = {}  # the state is held, so that its id stays its own


def drift(live: Live) -> tuple[Drift, ...]:
    """Table by table, in the release's order; () where nothing was touched or nothing is live."""
    found: list[Drift] = []
    alike = shared_release(live.release) if live.release else None
    for state in live.release.tables if live.release else ():
        stats = live.table(state.table.name)
        if stats is None:
            found += _gone(state)
            continue
        same = (alike.table(state.table.name) if alike else None) or state
        key = (id(same), table_key(stats))
        if key not in _seen:
            if len(_seen) > _MOST:
                _seen.clear()
            _seen[key] = (same, _table(same, stats))
        found += _seen[key][1]
    return tuple(found)


def _gone(state: TableState) -> list[Drift]:
    name = state.table.name
    if state.table.kind == "landing":
        adopt = f"drop {name} from the pipeline, with what it feeds"
        repair = "bring the table back from a copy, or let its producer create it"
    else:
        adopt = f"drop {name} from the pipeline"
        repair = "console rollback, if the previous release has another version; else change its query to rebuild it"
    return [Drift(name, "missing", "", state.version.path, "", adopt, repair)]


def _table(state: TableState, stats: TableStats) -> list[Drift]:
    name, landing = state.table.name, state.table.kind == "landing"
    said = {column.name: column for column in state.version.columns}
    real = {column.name: column for column in stats.columns}
    found: list[Drift] = []
    for column in state.version.columns:
        if column.name not in real:
            found.append(_lost(state, column))
        elif _type(real[column.name]) != _type(column):
            found.append(_retyped(state, column, real[column.name]))
    for column in stats.columns:
        if column.name not in said:
            adopt = f"declare {column.name} in tables/{name}.yaml" + ("" if landing else " and compute it in its query")
            repair = f"there: ALTER TABLE {name} DROP COLUMN, or leave it: nothing of ours reads it"
            found.append(Drift(name, "column", column.name, "", column.type, adopt, repair))
    if stats.partition_by != state.version.partition_by:
        adopt = f"write partition_by: [{', '.join(stats.partition_by)}] in tables/{name}.yaml"
        repair = (
            f"there: RESTORE TABLE {name} to the version before, then console follow" if landing else _rebuild(name)
        )
        found.append(
            Drift(name, "partitioning", "", _by(state.version.partition_by), _by(stats.partition_by), adopt, repair)
        )
    return found if landing else found + _ours(state, stats)


def _lost(state: TableState, column: Column) -> Drift:
    name = state.table.name
    adopt = f"drop {column.name} from tables/{name}.yaml and from what reads it"
    repair = f"there: ALTER TABLE {name} ADD COLUMN {column.name} {column.type}, older rows read NULL"
    return Drift(
        name, "column", column.name, column.type, "", adopt, repair if state.table.kind == "landing" else _rebuild(name)
    )


def _retyped(state: TableState, column: Column, real: Column) -> Drift:
    name = state.table.name
    adopt = f"declare {column.name} as {real.type} in tables/{name}.yaml"
    repair = "there: RESTORE TABLE to the version before" if state.table.kind == "landing" else _rebuild(name)
    return Drift(name, "type", column.name, column.type, real.type, adopt, repair)


def _ours(state: TableState, stats: TableStats) -> list[Drift]:
    """Settings that a table of ours was not created with, and features that none has."""
    name, found = state.table.name, []
    for key, was, now in changed(state.version.settings, stats.properties) if state.version.settings else _known(stats):
        undo = f"SET TBLPROPERTIES ('{key}' = '{was}')" if was else f"UNSET TBLPROPERTIES ('{key}')"
        adopt = "none: a feed cannot work with it" if key in _FOREIGN else "none: it is what the table was created with"
        found.append(Drift(name, "property", key, was, now, adopt, f"there: ALTER TABLE {name} {undo}"))
    for feature in stats.features:
        if feature in _FEATURES:
            repair = f"there: ALTER TABLE {name} DROP FEATURE {feature}, or {_rebuild(name)}"
            found.append(Drift(name, "feature", feature, "", "on", "none: a feed cannot work with it", repair))
    return found


def _known(stats: TableStats) -> list[tuple[str, str, str]]:
    """Of a table whose release says nothing of its settings (0.1.0): those that feeds would break by, or lose their place."""
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
