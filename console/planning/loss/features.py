"""Delta table features of a landing table that a live range cannot be read with: refused before anything is built."""

from console.errors import Problem
from console.model.live import TableStats
from console.model.schema import Table

# what a reader must know of a table, and `agent/feeds/appended` and Delta's own reader do
READ = frozenset(
    (
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    )
)


def unreadable(table: Table, stats: TableStats, region: str) -> list[Problem]:
    """C127, one for each feature."""
    hint = "`ALTER TABLE … DROP FEATURE` it there, or feed the pipeline from a copy of the table without it"
    return [
        Problem(
            "C127",
            f"{table.name} in {region} has the table feature {feature}: its rows cannot be followed",
            table.where,
            hint,
            node=table.name,
        )
        for feature in stats.reader
        if feature not in READ
    ]
