"""The UTC day of a time, in a log's statistics and in Spark. Python's dates are avoided: Delta and Spark hold times beyond
their range (model/slices)."""

from typing import Any

from arro3.core import DataType

from console.model.live import TableState
from console.model.schema import quoted, text_literal
from console.model.slices import EARLY, FIRST, LAST, LATE, day_name

_A_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
# types of partition columns whose values `partition_texts` gives as the log does
COMPARABLE = ("date", "string", "int", "integer", "bigint", "long", "smallint", "short", "tinyint", "byte")
OUTSIDE = "PARTITION_DAY_OUT_OF_RANGE"  # in Spark's error for a row whose day is no valid partition


def day_numbers(column: Any) -> list[int | None]:
    """Days since 1970 of a statistics column; None where a value is missing or of an unreadable type."""
    kind = column.type
    if DataType.is_date32(kind):
        return list(column.cast(DataType.int32()).to_pylist())
    if DataType.is_timestamp(kind):
        unit = _A_DAY[kind.time_unit]
        return [None if at is None else at // unit for at in column.cast(DataType.int64()).to_pylist()]
    return [None] * len(column)


def plain_values(column: Any) -> list[Any]:
    """A statistics column with dates as days since 1970, times as microseconds since 1970, other values unchanged."""
    kind = column.type
    if DataType.is_date32(kind):
        return day_numbers(column)
    if DataType.is_timestamp(kind):
        target_unit, unit = _A_DAY["us"], _A_DAY[kind.time_unit]
        return [None if at is None else at * target_unit // unit for at in column.cast(DataType.int64()).to_pylist()]
    return list(column.to_pylist())


def literal(value: Any, kind: str) -> Any:
    """A value of `plain_values` as a Spark literal. kind: type of the column that it is compared with"""
    from pyspark.sql.functions import date_from_unix_date, lit, timestamp_micros

    if value is None or kind not in ("date", "timestamp", "timestamp_ntz"):
        return lit(value)
    return date_from_unix_date(lit(value)) if kind == "date" else timestamp_micros(lit(value))


def day_names(column: Any) -> list[str]:
    """Day names of a statistics column, "" for None."""
    return ["" if number is None else day_name(number) for number in day_numbers(column)]


def partition_texts(actions: Any, column: str) -> list[str | None]:
    """A partition column's values in flattened add actions, one per file, as text; None for NULL. column: its stored name"""
    column_values = actions.column(f"partition.{column}")
    if DataType.is_date32(column_values.type):
        return [name or None for name in day_names(column_values)]
    return [None if value is None else str(value) for value in column_values.to_pylist()]


def clamped_day(time: Any) -> Any:
    """The day of a time column as a Spark date; all days before or after the named ones are clamped to one day each."""
    from pyspark.sql.functions import to_date, when

    day = to_date(time)
    low, high = _day(FIRST - 1), _day(LAST + 1)
    return when(day < low, low).when(day > high, high).otherwise(day)


def named_day(day: Any) -> Any:
    """The name of a clamped Spark date; NULL stays NULL."""
    from pyspark.sql.functions import lit, when

    text = when(day < _day(FIRST), lit(EARLY)).when(day > _day(LAST), lit(LATE))
    return text.otherwise(day.cast("string"))


def all_nameable(column: Any) -> bool:
    """Whether every value of a pyarrow column is a valid partition day, if it holds dates or times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        return True
    unit = 1 if pa.types.is_date32(kind) else _A_DAY[kind.unit]
    ends = pc.min_max(column.cast(pa.int32() if unit == 1 else pa.int64())).as_py()
    return ends["min"] is None or (ends["min"] // unit >= FIRST and ends["max"] // unit <= LAST)


def stored_columns(target: TableState) -> list[str]:
    """A target's stored columns as SQL, for rows computed by its feed. As SQL, since calls into the JVM cost time.

    A row whose partition is a day without a name fails the job: deltalake can neither write such a partition nor read its
    log.
    """
    return [_stored_column(target, column.name, column.type) for column in target.version.columns]


def _stored_column(target: TableState, name: str, kind: str) -> str:
    column = quoted(name)
    if name not in target.version.partition_by or not kind.startswith(("date", "timestamp")):
        return column
    valid = f"date_from_unix_date({FIRST}) AND date_from_unix_date({LAST})"
    message = f"{OUTSIDE}: {target.table.name}.{name} of a row lies outside the years 0001 to 9999"
    return f"if({column} IS NULL OR to_date({column}) BETWEEN {valid}, {column}, raise_error({text_literal(message)})) AS {column}"


def _day(number: int) -> Any:
    from pyspark.sql.functions import date_from_unix_date, lit

    return date_from_unix_date(lit(number))
