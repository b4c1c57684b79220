"""Whether two Delta tables hold the same rows: whole rows, as multisets, in both directions, a day at a time."""

from collections.abc import Sequence
from datetime import date

import duckdb
from deltalake import DeltaTable


def differences(one: str, other: str, columns: Sequence[str], days: Sequence[date]) -> int:
    """How many rows one of both has more often than the other, of all days, and of no day and of other days.

    one, other  paths of tables that have a `day`
    """
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    for name, path in (("one", one), ("other", other)):
        db.register(name, DeltaTable(path).to_pyarrow_dataset())
    names = ", ".join(columns)
    listed = ", ".join(f"DATE '{day}'" for day in days)
    parts = [f"day = DATE '{day}'" for day in days] + [f"(day IS NULL OR day NOT IN ({listed}))"]
    return sum(_more(db, names, part, *sides) for part in parts for sides in (("one", "other"), ("other", "one")))


def _more(db: duckdb.DuckDBPyConnection, names: str, part: str, left: str, right: str) -> int:
    sides = (f"SELECT {names} FROM {side} WHERE {part}" for side in (left, right))
    row = db.execute(f"SELECT count(*) FROM ({' EXCEPT ALL '.join(sides)})").fetchone()
    assert row is not None
    return int(row[0])
