"""What arrives in a pipeline's stores and is not stored, for `console status`."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.cli.figures import count
from console.errors import ConsoleError
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.region import Region
    from console.stores.files import Plan, Site
    from console.stores.protocol import LeftOut

Found = list[tuple["Site", "tuple[LeftOut, ...]", "ConsoleError | None"]]


def arriving(root: Path, pipeline: str, regions: "Sequence[Region]") -> Found:
    """Each store's columns that arrive and have no place there; [] where the pipeline replicates nothing."""
    if not (root / "plans" / pipeline / "replication.yaml").is_file():
        return []
    from console.stores.files import read_plan, sites

    plan = read_plan(root, pipeline)
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda site: _ask(plan, site), sites(plan, regions)))


def _ask(plan: "Plan", site: "Site") -> "tuple[Site, tuple[LeftOut, ...], ConsoleError | None]":
    from console.stores.consume import lagging

    store = site.open()
    try:
        return site, lagging(store, [site.target.place(table) for table in plan.replication.tables]), None
    except ConsoleError as error:
        return site, (), error
    finally:
        store.close()


def arriving_text(found: Found) -> str:
    """The lines below a status; "" where everything is stored."""
    lines = []
    for site, columns, error in found:
        if error is not None:
            lines.append(f"{site.name}: {safe_text(str(error))}")
        for one in columns:
            lines.append(f"{site.name}: {safe_text(one.place)}.{safe_text(one.column)}: {count(one.rows, 'row')}")
    return "\n".join(["arriving but not stored:", *(f"  {line}" for line in lines)]) if lines else ""


def arriving_data(found: Found) -> list[dict[str, Any]]:
    """For `--output json`."""
    return [
        {
            "region": site.region.name,
            "store": site.target.name,
            "columns": [
                {"table": one.place, "column": one.column, "rows": one.rows, "since": one.since} for one in columns
            ],
            "error": str(error) if error else "",
        }
        for site, columns, error in found
    ]
