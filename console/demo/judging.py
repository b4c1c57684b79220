"""The surroundings of the independent check: figures from before the rollout, a reader beside it, and the check as a separate process."""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.demo.prepare import PIPELINE, Demo
from console.errors import RegionError
from console.runner.view import RegionView

CHECK, READER = Path(__file__).parent / "check.py", Path(__file__).parent / "reader.py"
MIN_READS = 200
MAX_READ_SECONDS = 240.0
Facts = dict[str, dict[str, int]]  # region → figures


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of the independent check. code: its exit code, 0 if nothing is wrong;  report: its table;  figures: per region"""

    code: int
    report: str
    figures: tuple[dict[str, Any], ...]


def facts(view: RegionView) -> dict[str, int]:
    """Figures of a region before its pending change.

    raises  RegionError if none is
    """
    name = view.region.name
    landing = DeltaTable(str(Path(view.region.warehouse) / "landing"))
    rows = sum(landing.get_add_actions(flatten=True).column("num_records").to_pylist())
    if view.plan is None or not view.plan.changes:
        raise RegionError(f"{name}: no change is pending", hint="start over: console demo --reset", code="E_DEMO")
    return {"before": rows, "moved": 0, "everything": view.plan.everything.bytes}


def text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def start_reader(demo: Demo) -> None:
    _reads(demo).unlink(missing_ok=True)
    demo.processes.start(
        "reader", str(READER), *_warehouses(demo), "--results", str(_reads(demo)), "--pipeline", PIPELINE,
        "--wanted", str(MIN_READS),
    )  # fmt: skip


async def await_reads(demo: Demo) -> tuple[str, ...]:
    """Wait until the reader has read the new release too, before it is stopped. Returns the faults that it noted."""
    until = time.monotonic() + MAX_READ_SECONDS
    while demo.processes.alive("reader") and time.monotonic() < until:
        reads = _read_log(demo)
        if reads and min(figures["reads"] for figures in reads.values()) >= MIN_READS:
            break
        await asyncio.sleep(0.5)
    return tuple(f"{name:<4}{note}" for name, figures in _read_log(demo).items() for note in figures["notes"])


async def check(demo: Demo, known: Facts) -> Judgement:
    """Compare the tables with an independent computation; the producers must have stopped.

    known  region → its `facts`
    """
    path, result = demo.run / "facts.json", demo.run / "check.json"
    path.write_text(json.dumps(known))
    result.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", str(CHECK), *_warehouses(demo), "--pipeline", PIPELINE, "--reads", str(_reads(demo)),
        "--ledgers", str(demo.run / "ledgers"), "--facts", str(path), "--json", str(result),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    out, _ = await process.communicate()
    return Judgement(process.returncode or 0, out.decode(), tuple(json.loads(text(result) or "[]")))


def _read_log(demo: Demo) -> dict[str, Any]:
    counts: dict[str, Any] = json.loads(text(_reads(demo)) or "{}")
    return counts


def _warehouses(demo: Demo) -> list[str]:
    return [word for region in demo.regions for word in ("--region", f"{region.name}={region.warehouse}")]


def _reads(demo: Demo) -> Path:
    return demo.run / "reads.json"
