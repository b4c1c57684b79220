"""The state of a region that a plan depends on, as comparable facts, without Delta versions and rows."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from console.model.live import Live, TableStats
from console.model.pipeline import Pipeline, digest
from console.model.schema import Column
from console.planning.cache.planner_cache import Memo, PlannerCache

_NOTHING = "nothing"
_COLUMN = tuple(field.name for field in fields(Column))
_column = attrgetter(*_COLUMN)
Shape = tuple[str, dict[str, str]]
_SHAPES = Memo[Mapping[str, Shape]](64)
TableKey = tuple[tuple[tuple[Any, ...], ...], tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The live release; the version and the shape behind each name, landing tables included; every shape in full.

    tables  name → (path of its version, digest of its shape)
    shapes  digest → columns, layout, features and `delta.*` properties of a real table, each as one fact
    """

    release: str
    tables: dict[str, tuple[str, str]]
    shapes: dict[str, dict[str, str]]

    @property
    def digest(self) -> str:
        """Binds a plan to its baseline."""
        return digest({"release": self.release, "tables": {name: list(entry) for name, entry in self.tables.items()}})


def baseline(pipeline: Pipeline, live: Live, cache: PlannerCache | None = None) -> Baseline:
    """The baseline of a plan of this pipeline; new rows do not change it."""
    cache = cache or PlannerCache()
    tables: dict[str, tuple[str, str]] = {}
    shapes: dict[str, dict[str, str]] = {}
    for state in live.release.tables if live.release else ():
        tables[state.table.name] = (state.version.path, "")
    for table in pipeline.tables:
        if table.kind == "landing":
            tables.setdefault(table.name, ("", ""))
    actual = table_shapes(live, cache)
    for stats in live.stats:
        if stats.name in tables:
            shape, facts = actual[stats.name]
            tables[stats.name] = (tables[stats.name][0], shape)
            shapes[shape] = facts
    return Baseline(live.release.id if live.release else "", tables, shapes)


def table_shapes(live: Live, cache: PlannerCache) -> Mapping[str, Shape]:
    """Real table → digest of its shape, and its facts; the same object for all tables of one shape."""

    def made() -> dict[str, Shape]:
        return {stats.name: cache.by_value(table_shape, table_key(stats)) for stats in reversed(live.stats)}

    return cache.by_identity(_SHAPES, made, live.stats)


def table_key(stats: TableStats) -> TableKey:
    """Everything about a real table that a plan depends on, as a cache key."""
    return tuple(map(_column, stats.columns)), stats.partition_by, stats.features, stats.properties


def table_shape(key: TableKey) -> Shape:
    """Digest of the shape, and its facts."""
    columns, partition_by, features, properties = key
    facts: dict[str, str] = {}
    for values in columns:
        column = Column(**dict(zip(_COLUMN, values, strict=True)))
        facts[f"column {column.name}"] = column.type if column.nullable else f"{column.type} not null"
    if partition_by:
        facts["partitioning"] = ", ".join(partition_by)
    facts |= {f"feature {name}": "on" for name in features}
    facts |= {f"property {name}": value for name, value in properties}
    return digest(facts), facts


def baseline_changes(old: Baseline, new: Baseline) -> tuple[str, ...]:
    """The differences as sentences: `table requests: version requests/1-1 → requests/2-2`."""
    changes: list[str] = []
    if old.release != new.release:
        changes.append(f"release {old.release or _NOTHING} → {new.release or _NOTHING}")
    for name in dict.fromkeys((*old.tables, *new.tables)):
        old_path, old_shape = old.tables.get(name, ("", ""))
        new_path, new_shape = new.tables.get(name, ("", ""))
        if old_path != new_path:
            changes.append(f"table {name}: version {old_path or _NOTHING} → {new_path or _NOTHING}")
        if old_shape != new_shape:
            changes += _facts(name, old.shapes.get(old_shape, {}), new.shapes.get(new_shape, {}))
    return tuple(changes)


def _facts(name: str, was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    if not was or not now:
        return [f"table {name}: {'there' if was else _NOTHING} → {'there' if now else _NOTHING}"]
    changes = []
    for fact in dict.fromkeys((*was, *now)):
        before, after = was.get(fact), now.get(fact)
        if before != after:
            changes.append(f"table {name}: {fact} {before or _NOTHING} → {after or _NOTHING}")
    return changes
