"""A region's Spark sleeps and wakes, for real: a landing commit, a query and a rollout start the next JVM."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
MIB = 1 << 20


def cycles(place: Path, number: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.agent.asleep", str(place), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900 + 60 * number)
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(report))
    return report


def well(report: dict[str, Any]) -> None:
    assert (report["spark_at_start"], report["lost"]) == (False, False)
    each = report["cycles"]
    assert all(cycle["gone"] and cycle["late"] for cycle in each), each
    assert len({cycle["jvm"] for cycle in each}) == len(each)
    landed = len(each) + 2
    assert report["rows"] == [100 + n for n in range(landed)], "every row once"
    told = report["while_ending"]
    assert (told["answered_early"], told["query"], told["kept_at_gate"]) == (False, told["query"], True)
    assert told["apply"].startswith("web-")


def test_spark_is_ended_at_rest_and_woken_by_a_row_a_query_and_a_rollout(tmp_path: Path) -> None:
    report = cycles(tmp_path, 2)  # and once more while it is ended
    well(report)
    first, last = report["cycles"]
    assert last["descriptors"] <= first["descriptors"] + 2
    assert last["threads"] <= first["threads"] + 1


@pytest.mark.soak
def test_a_spark_that_was_ended_and_woken_two_hundred_times_leaves_nothing_behind(tmp_path: Path) -> None:
    report = cycles(tmp_path, 200)
    well(report)
    early, last = report["cycles"][9], report["cycles"][-1]
    assert last["descriptors"] <= early["descriptors"] + 2
    assert last["threads"] <= early["threads"] + 1
    assert last["pss"] < early["pss"] + 32 * MIB
