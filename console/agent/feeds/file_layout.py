"""How rows of a build are laid into files: few for each partition, sorted by the clustering columns."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from console.model import small_batch
from console.model.live import TableState
from console.model.schema import quoted
from console.model.slices import Slice

FILE_BYTES = 128 << 20  # what a file should have
SMALL_BYTES = 32 << 20  # files below this are small
FEW = 2  # files of one day that a batch may write
_FILE = "__file"


def in_few_files(rows: Any, run: Sequence[Slice], target: TableState, tasks: int) -> Any:
    """The rows of a batch in as many Spark partitions as it has tasks at most.

    A task of a build reads files of many days and writes a file for each of them, so that many tasks write many small files: there, rows
    of one day are brought together first (docs/decisions/0040).
    """
    files, rows = files_a_day(run, target, tasks), rows.coalesce(tasks)
    if not files:
        return rows
    from pyspark.sql.functions import col, lit, spark_partition_id

    partitions = [col(quoted(name)) for name in target.version.partition_by]
    if files == 1:
        return rows.repartition(tasks, *partitions)
    # by the task that has computed a row: one that is repeated sends each row to where it went before
    placed = rows.withColumn(_FILE, spark_partition_id() % lit(files))
    return placed.repartition(tasks, *partitions, col(_FILE)).drop(_FILE)


def files_a_day(run: Sequence[Slice], target: TableState, tasks: int) -> int:
    """Files of each day where its rows are brought together; 0 where they are not: they would not be small, or are few already."""
    days = Counter[str]()
    for piece in run:
        days[piece.label[:10]] += piece.bytes  # the hours of a day are one partition
    heaviest = max(days.values(), default=0)
    # of a source without statistics nothing is known; a small batch is written by the agent
    if tasks <= FEW or not heaviest or small_batch.is_small(run) or not _by_day(target):
        return 0
    return -(-heaviest // FILE_BYTES) if heaviest < tasks * SMALL_BYTES else 0


def _by_day(target: TableState) -> bool:
    types = {column.name: column.type for column in target.version.columns}
    return any(types.get(name) == "date" for name in target.version.partition_by)


def clustered(rows: Any, target: TableState) -> Any:
    """The rows of each task sorted by the table's clustering columns."""
    stored = {column.name for column in target.version.columns}
    order = [place for name in target.table.cluster_by if (place := target.stored_in(name)[0]) in stored]
    if not order:
        return rows
    # with the partition columns first: the writer would otherwise sort by them alone and undo this order
    return rows.sortWithinPartitions(*map(quoted, (*target.version.partition_by, *order)))
