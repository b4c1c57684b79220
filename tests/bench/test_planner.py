"""How long planning takes and how much it holds: processor time of one core, so that a busy machine tells the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.report import Measurement, check

WARM_SECONDS, COLD_SECONDS, FLEET_SECONDS, FLEET_MIB = 0.5, 15.0, 5.0, 1024

pytestmark = pytest.mark.bench

PROGRAM = """
import gc, json, resource, sys, time
from pathlib import Path
from tests.bench import fleet
from tests.bench.fleet import drawn_region, edited, pipeline, region, regions
from console import planning
from console.project.recent import Remembered

what, place = sys.argv[1], Path(sys.argv[2])
fleet.MEMORY.update(Remembered(place.with_name("compiled.tsv"), lambda: "bench"))
memory = Remembered(place, lambda: "bench")
if what == "fill":
    planning.check(pipeline(), planning.PlannerCache(memory))
    memory.save()
    sys.exit()
wanted, lives = edited(), list(regions(200, 20)) if what == "fleet" else [drawn_region(0)]
cache = planning.PlannerCache(memory)
gc.freeze()  # as the command line does once the surveys are in
start = time.process_time()
plans = [planning.plan(wanted, live, region(i), "bench", cache) for i, live in enumerate(lives)]
spent = time.process_time() - start
changed = sorted(node.name for node in plans[0].changes)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": spent, "bytes": peak, "plans": len(plans), "changed": changed, "digest": plans[0].digest()}))
"""


def measured(what: str, place: Path) -> dict[str, Any]:
    """One run in a fresh process: nothing is warm but what the file holds."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, str(place)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout) if done.stdout else {}
    return output


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "compiled.tsv"
    measured("fill", path)
    return path


def test_five_edits_of_500_tables_are_planned_in_half_a_second_from_a_warm_memory(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warm, cold = measured("one", place), measured("one", place.with_name("none.tsv"))
    assert warm["changed"] == ["e_00", "t_00_8", "t_01_7", "t_02_8", "t_03_8", "t_04_8"][1:]
    assert warm["digest"] == cold["digest"]
    of = "500 tables, five edited"
    with capsys.disabled():
        check(
            seconds(f"planning {of}, from a warm memory", warm["seconds"], WARM_SECONDS),
            seconds(f"planning {of}, without a memory", cold["seconds"], COLD_SECONDS),
        )


def seconds(what: str, figure: float, limit: float) -> Measurement:
    return Measurement(what=what, figure=figure, limit=limit, text=f"{figure:.2f} processor seconds")


def test_a_corrupt_memory_costs_what_a_cold_one_costs_and_plans_the_same(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[::199] = bytes(byte ^ 1 for byte in data[::199])
    torn = place.with_name("torn.tsv")
    torn.write_bytes(data)
    assert measured("one", torn)["digest"] == measured("one", place)["digest"]


def test_200_regions_in_20_live_states_are_planned_in_five_seconds_and_less_than_a_gigabyte(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = measured("fleet", place)
    assert fleet["plans"] == 200
    of, mib = "200 regions in 20 live states, of 500 tables", fleet["bytes"] / (1 << 20)
    with capsys.disabled():
        check(
            seconds(f"planning {of}", fleet["seconds"], FLEET_SECONDS),
            Measurement(what=f"planning {of}: memory", figure=mib, limit=FLEET_MIB, text=f"{mib:,.0f} MiB"),
        )
