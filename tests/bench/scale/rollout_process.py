"""Rollouts that rebuild the demo's requests, in one warm JVM: `FOLDER CASES`. Prints a JSON list, an object for each rollout.

CASES is a JSON list of `SizedCase`. Each has a region of its own, whose first release warms the JVM up and measures its rate.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from console.model.event import BatchDone
from console.model.plan import Plan
from tests.bench import demo_rows
from tests.bench.measured_region import MeasuredRegion, RolloutCosts
from tests.bench.scale.costs import ScaleRun

TARGET_SECONDS = 3600.0  # batches are cut by rows alone, so that their number is known before


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedCase:
    """limits: rows of a batch at most, a rollout for each; the first release has the first one"""

    rows: int
    days: int
    limits: tuple[int, ...]


def main(place: Path, cases: list[SizedCase]) -> list[dict[str, Any]]:
    return [rollout for number, case in enumerate(cases) for rollout in rollouts(place / str(number), case)]


def rollouts(place: Path, case: SizedCase) -> Iterator[dict[str, Any]]:
    place.mkdir()
    region = MeasuredRegion(place)
    demo_rows.land(region.landing, case.rows, case.days)
    region.start()
    try:
        limit(region, case.limits[0])
        region.carry(region.plan(demo_rows.files()))
        region.promote()
        for number, rows in enumerate(case.limits, 1):
            limit(region, rows)
            before, plan = stored(region), region.plan(demo_rows.files(number))
            costs = region.carry(plan)
            yield {"run": asdict(figures(region, costs, before)), "price": asdict(priced(plan))}
            region.discard()
    finally:
        region.close()
        shutil.rmtree(place)


def limit(region: MeasuredRegion, rows: int) -> None:
    lines = ("name: us", "warehouse: w", f"limits: {{rows: {rows}, target_seconds: {TARGET_SECONDS:g}}}")
    (region.root / "regions" / "us.yaml").write_text("\n".join(lines) + "\n")


def priced(plan: Plan) -> Any:
    """Of the table that is rebuilt."""
    (node,) = (node for node in plan.nodes if node.name == "requests")
    return node.price


def stored(region: MeasuredRegion) -> int:
    """Bytes of the region's own tables."""
    return sum(path.stat().st_size for path in (region.warehouse / "_console").rglob("*") if path.is_file())


def figures(region: MeasuredRegion, costs: RolloutCosts, before: int) -> ScaleRun:
    """before: as of `stored`, before the rollout"""
    batches = [done for done in region.controller.recorder.events(BatchDone) if done.rows_in]
    landing, built = DeltaTable(str(region.landing)), DeltaTable(region.built("requests"))
    files = pa.table(built.get_add_actions(flatten=True))
    log = Path(region.built("requests")) / "_delta_log"
    return ScaleRun(
        rows=sum(done.rows_in for done in batches),
        batches=len(batches),
        seconds=costs.total,
        batch_clock=sum(done.seconds for done in batches),
        landing_bytes=sum(pa.table(landing.get_add_actions(flatten=True))["size_bytes"].to_pylist()),
        written=sum(files["size_bytes"].to_pylist()),
        files=files.num_rows,
        days=len(set(files["partition.day"].to_pylist())),
        commits=built.version() + 1,
        log_bytes=sum(path.stat().st_size for path in log.glob("*.json")),
        stored_bytes=stored(region) - before,
    )


if __name__ == "__main__":
    given = [SizedCase(**{**case, "limits": tuple(case["limits"])}) for case in json.loads(sys.argv[2])]
    print(json.dumps(main(Path(sys.argv[1]), given)))
