"""Storage of a table that keeps the newest row of each key: all rows as they arrived, merged at read and by compaction.

A row's order is fixed when it is written: the hash that breaks ties is stored with it, so that a column added or
changed later never makes another row the newest.
"""

from typing import Final

from console.model.schema import Column, quoted
from console.record import dataclass

ROW_HASH: Final = "_row_hash"
BUCKET: Final = "_bucket"
BUCKETS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """Names are those of stored columns.

    key    rows that are equal in these are read as one row;  order: the greatest is the newest, NULL the oldest
    tie    columns whose hash breaks ties
    bucket whether the version is partitioned by a hash of the key
    merged compiled Spark SQL over a view named `stored`: of each key the newest row, in all stored columns
    """

    key: tuple[str, ...]
    order: tuple[str, ...]
    tie: tuple[str, ...]
    bucket: bool
    merged: str

    @property
    def added(self) -> tuple[Column, ...]:
        """The columns that a version stores in addition to the declared ones."""
        bucket = (Column(name=BUCKET, type="int"),) if self.bucket else ()
        return (Column(name=ROW_HASH, type="bigint"), *bucket)

    @property
    def added_values(self) -> tuple[str, ...]:
        """SQL for these columns, over a row's other columns."""
        bucket = (f"CAST(pmod(xxhash64({listed(self.key)}), {BUCKETS}) AS INT) AS {BUCKET}",) if self.bucket else ()
        return (f"{hashed(self.tie)} AS {ROW_HASH}", *bucket)


def listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(quoted, names))


def hashed(names: tuple[str, ...]) -> str:
    """SQL of a hash of columns, with a flag for each column: Spark's hash skips NULL, so a value in one column would
    hash like the same value in the next."""
    return f"xxhash64({', '.join(f'isnull({quoted(name)}), {quoted(name)}' for name in names)})"
