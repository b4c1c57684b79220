"""The UTC day of a time, wherever one is told: in a log's statistics, and in Spark. Never as Python's own dates on the way,
for Delta and Spark hold times that these cannot (model/slices)."""

from typing import Any

from arro3.core import DataType

from console.model.live import TableState
from console.model.schema import quoted, text_literal
from console.model.slices import EARLY, FIRST, LAST, LATE, day_name

_A_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
OUTSIDE = "PARTITION_DAY_OUT_OF_RANGE"  # what Spark's error says of a row that no partition may hold


def numbers(column: Any) -> list[int | None]:
    """Days since 1970 of a column of a log's statistics; None where the log tells none, or tells it in a way that nobody reads."""
    kind = column.type
    if DataType.is_date32(kind):
        return list(column.cast(DataType.int32()).to_pylist())
    if DataType.is_timestamp(kind):
        unit = _A_DAY[kind.time_unit]
        return [None if at is None else at // unit for at in column.cast(DataType.int64()).to_pylist()]
    return [None] * len(column)


def plain(column: Any) -> list[Any]:
    """A column of a log's statistics: dates as days since 1970, times as microseconds, everything else as it is."""
    kind = column.type
    if DataType.is_date32(kind):
        return numbers(column)
    if DataType.is_timestamp(kind):
        whole, unit = _A_DAY["us"], _A_DAY[kind.time_unit]
        return [None if at is None else at * whole // unit for at in column.cast(DataType.int64()).to_pylist()]
    return list(column.to_pylist())


def literal(value: Any, kind: str) -> Any:
    """A plain value in Spark. kind: of the column that it is compared with"""
    from pyspark.sql.functions import date_from_unix_date, lit, timestamp_micros

    if value is None or kind not in ("date", "timestamp", "timestamp_ntz"):
        return lit(value)
    return date_from_unix_date(lit(value)) if kind == "date" else timestamp_micros(lit(value))


def names(column: Any) -> list[str]:
    """Days of a column of a log's statistics by their names, "" for None."""
    return ["" if number is None else day_name(number) for number in numbers(column)]


def clamped(time: Any) -> Any:
    """The day of a column of times as a Spark date, with one day each for all that lie before and after those with a name."""
    from pyspark.sql.functions import to_date, when

    day = to_date(time)
    low, high = _day(FIRST - 1), _day(LAST + 1)
    return when(day < low, low).when(day > high, high).otherwise(day)


def named(day: Any) -> Any:
    """A Spark date as its name; NULL stays NULL."""
    from pyspark.sql.functions import lit, when

    text = when(day < _day(FIRST), lit(EARLY)).when(day > _day(LAST), lit(LATE))
    return text.otherwise(day.cast("string"))


def nameable(column: Any) -> bool:
    """Whether a partition can have each value of a pyarrow column, if these are dates or times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return True
    unit = 1 if pa.types.is_date32(kind) else _A_DAY[kind.unit]
    ends = pc.min_max(column.cast(pa.int32() if unit == 1 else pa.int64())).as_py()
    return ends["min"] is None or (ends["min"] // unit >= FIRST and ends["max"] // unit <= LAST)


def stored(target: TableState) -> list[str]:
    """The columns that a table stores, of rows that its feed computes; as SQL, for each call into the JVM costs time.

    A row whose partition is a day without a name ends the job: deltalake cannot write such a partition, nor read its log.
    """
    return [_stored(target, column.name, column.type) for column in target.version.columns]


def _stored(target: TableState, name: str, kind: str) -> str:
    shown = quoted(name)
    if name not in target.version.partition_by or not kind.startswith(("date", "timestamp")):
        return shown
    named = f"date_from_unix_date({FIRST}) AND date_from_unix_date({LAST})"
    said = f"{OUTSIDE}: {target.table.name}.{name} of a row lies outside the years 0001 to 9999"
    return f"if({shown} IS NULL OR to_date({shown}) BETWEEN {named}, {shown}, raise_error({text_literal(said)})) AS {shown}"


def _day(number: int) -> Any:
    from pyspark.sql.functions import date_from_unix_date, lit

    return date_from_unix_date(lit(number))
