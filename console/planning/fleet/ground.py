"""What a plan rests on in its region, as facts that can be compared and told; Delta versions and rows are none of them."""

from collections.abc import Mapping

from console.model.live import Live, TableStats
from console.model.pipeline import Pipeline, digest
from console.model.schema import Column

Ground = dict[str, str]  # `release`, and `table requests: partitioning` and the like → as it was found
_NOTHING = "nothing"


def ground(pipeline: Pipeline, live: Live) -> Ground:
    """Every fact: the live release, the version behind each name, and the columns, layout, features and `delta.*`
    properties of the real tables, landing tables included. They do not move with rows."""
    facts: Ground = {"release": live.release.id if live.release else ""}
    named = {state.table.name: state for state in live.release.tables} if live.release else {}
    for name, state in named.items():
        facts[f"table {name}: version"] = state.version.path
    landing = {table.name for table in pipeline.tables if table.kind == "landing"}
    for stats in live.stats:
        if stats.name in landing or stats.name in named:
            facts |= {f"table {stats.name}: {key}": value for key, value in _table(stats).items()}
    return facts


def _table(stats: TableStats) -> Ground:
    facts = {f"column {column.name}": _column(column) for column in stats.columns}
    facts |= {"partitioning": ", ".join(stats.partition_by)} if stats.partition_by else {}
    facts |= {f"feature {name}": "on" for name in stats.features}
    return facts | {f"property {name}": value for name, value in stats.properties}


def _column(column: Column) -> str:
    return column.type if column.nullable else f"{column.type} not null"


def sealed(facts: Mapping[str, str]) -> str:
    """The digest that binds a plan to its ground."""
    return digest(dict(facts))


def moved(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """What differs, in words: `table requests: version requests/1-1 → requests/2-2`."""
    told = []
    for fact in dict.fromkeys((*was, *now)):
        before, after = was.get(fact), now.get(fact)
        if before != after:
            told.append(f"{fact} {before or _NOTHING} → {after or _NOTHING}")
    return tuple(told)
