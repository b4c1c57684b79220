"""What a plan rests on in its region, as facts that can be compared and told; Delta versions and rows are none of them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

from console.model.live import Live, TableStats
from console.model.pipeline import Pipeline, digest
from console.model.schema import Column

_NOTHING = "nothing"
_column = attrgetter(*(field.name for field in fields(Column)))
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
        """The digest that binds a plan to its ground."""
        return digest({"release": self.release, "tables": {name: list(held) for name, held in self.tables.items()}})


def baseline(pipeline: Pipeline, live: Live) -> Baseline:
    """It does not move with rows."""
    tables: dict[str, tuple[str, str]] = {}
    shapes: dict[str, dict[str, str]] = {}
    for state in live.release.tables if live.release else ():
        tables[state.table.name] = (state.version.path, "")
    for table in pipeline.tables:
        if table.kind == "landing":
            tables.setdefault(table.name, ("", ""))
    for stats in live.stats:
        if stats.name in tables:
            shape, facts = _shape(table_key(stats))
            tables[stats.name] = (tables[stats.name][0], shape)
            shapes[shape] = facts
    return Baseline(live.release.id if live.release else "", tables, shapes)


def table_key(stats: TableStats) -> TableKey:
    """What a real table is, as a key."""
    return tuple(map(_column, stats.columns)), stats.partition_by, stats.features, stats.properties


@lru_cache(maxsize=4096)
def _shape(key: TableKey) -> tuple[str, dict[str, str]]:
    columns, partition_by, features, properties = key
    facts: dict[str, str] = {}
    for values in columns:
        column = Column(*values)
        facts[f"column {column.name}"] = column.type if column.nullable else f"{column.type} not null"
    if partition_by:
        facts["partitioning"] = ", ".join(partition_by)
    facts |= {f"feature {name}": "on" for name in features}
    facts |= {f"property {name}": value for name, value in properties}
    return digest(facts), facts


def baseline_changes(was: Baseline, now: Baseline) -> tuple[str, ...]:
    """What differs, in words: `table requests: version requests/1-1 → requests/2-2`."""
    said = [f"release {was.release or _NOTHING} → {now.release or _NOTHING}"] if was.release != now.release else []
    for name in dict.fromkeys((*was.tables, *now.tables)):
        (old, before), (new, after) = was.tables.get(name, ("", "")), now.tables.get(name, ("", ""))
        if old != new:
            said.append(f"table {name}: version {old or _NOTHING} → {new or _NOTHING}")
        if before != after:
            said += _facts(name, was.shapes.get(before, {}), now.shapes.get(after, {}))
    return tuple(said)


def _facts(name: str, was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    if not was or not now:
        return [f"table {name}: {'there' if was else _NOTHING} → {'there' if now else _NOTHING}"]
    said = []
    for fact in dict.fromkeys((*was, *now)):
        before, after = was.get(fact), now.get(fact)
        if before != after:
            said.append(f"table {name}: {fact} {before or _NOTHING} → {after or _NOTHING}")
    return said
