"""The last word: both queries of an edit on Spark itself, by the replayer that proves witnesses."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from console.drivers.replay import Given, Ran, Replayer
from console.planning.compare import QueryDifference
from tests.planning.property.build import World
from tests.planning.property.edits import Edit
from tests.planning.property.judge import multiset


def given(world: World, number: int) -> dict[str, Given]:
    """One database of a world, in the values of the replayer."""
    return {
        table: Given(tuple(world.tables[table].items()), tuple(tuple(_json(value) for value in row) for row in rows))
        for table, rows in world.databases[number].items()
    }


def _json(value: Any) -> Any:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
    return value


def differing(edit: Edit, said: QueryDifference, old: Ran, new: Ran) -> str:
    """What differs in two runs although it is called the same, or ""; a query that fails shows nothing."""
    if said.rows != "same" or old.error or new.error:
        return ""
    olds = [name.lower() for name in (*said.same, *said.renamed)]
    news = [name.lower() for name in (*said.same, *said.renamed.values())]
    was = multiset(old.rows, _places(old, olds))
    now = multiset(new.rows, _places(new, news))
    return f"only old {dict(was - now)}, only new {dict(now - was)}" if was != now else ""


def _places(ran: Ran, names: Iterable[str]) -> list[int]:
    held = [column.lower() for column in ran.columns]
    return [held.index(name) for name in names]


def confirmed(suspected: list[tuple[Edit, QueryDifference, str]]) -> list[tuple[Edit, str]]:
    """Those differences seen in DuckDB that Spark shows as well."""
    found = []
    with Replayer() as spark:
        for edit, said, _ in suspected:
            for number in range(len(edit.world.databases)):
                old, new = spark.ask(given(edit.world, number), (edit.old, edit.new))
                if shown := differing(edit, said, old, new):
                    found.append((edit, shown))
                    break
    return found
