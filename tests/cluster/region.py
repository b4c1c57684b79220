"""A region on a standalone cluster: rows that are grouped, so that each batch has a shuffle, and the truth by DuckDB."""

from collections.abc import Mapping
from pathlib import Path

from tests.cluster.standalone import EXECUTORS, Events, Standalone
from tests.life.region import LiveRegion, multiset

CASE = Path(__file__).parent / "case"
TRUTH = {
    ("day, status, hits, bytes", "by_status"): """
        SELECT CAST(ts AS DATE), CAST(payload->>'$.status' AS INT), count(*), sum(CAST(payload->>'$.bytes' AS BIGINT))
        FROM landing GROUP BY ALL""",
}


def on_cluster(
    root: Path, cluster: Standalone, events: Events, *, conf: Mapping[str, str] | None = None, **sizes: int
) -> LiveRegion:
    return LiveRegion(root, master=cluster.url, conf={**EXECUTORS, **events.conf, **(conf or {})}, **sizes)


async def has_every_row(region: LiveRegion) -> None:
    """Every table has exactly the rows that DuckDB computes from the landing table."""
    for (columns, table), sql in TRUTH.items():
        assert multiset(await region.table("web", columns, table)) == multiset(region.truth(sql)), table


LARGEST = "CAST(get_json_object(payload, '$.bytes') AS BIGINT)"
# milliseconds of a processor for each row, whatever else its task has to do
SLOW = f"{LARGEST} + length(sha2(repeat(payload, 20000), 512))"


def with_another_column(folder: Path, largest: str = LARGEST) -> Path:
    """largest: what the new column is the maximum of"""
    for file in (path for path in CASE.rglob("*") if path.is_file()):
        place = folder / file.relative_to(CASE)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text()
        if file.name == "by_status.yaml":
            text = text.replace("bytes: bigint", "bytes: bigint, largest: bigint")
        if file.name == "by_status.sql":
            text = text.replace(
                "  approx_count",
                f"  max({largest}) AS largest,\n  approx_count",
            )
        place.write_text(text)
    return folder
