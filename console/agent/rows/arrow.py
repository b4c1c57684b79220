"""The rows of a DataFrame in Arrow, whichever Spark has them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_table(data: Any) -> "pa.Table":
    """All rows of a DataFrame. `DataFrame.toArrow` came with Spark 4.0; before, only pandas is given what it is made of.

    raises  what Spark raises
    """
    if hasattr(data, "toArrow"):
        return data.toArrow()
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    schema, batches = to_arrow_schema(data.schema), data._collect_as_arrow()
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
