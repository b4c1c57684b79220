"""The processor time of the screen: until its first picture, and at rest."""

import json
import os
import pickle
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console.runner.view import RegionView
from tests.bench import screen_process
from tests.bench.report import Measurement, check
from tests.bench.terminal import in_terminal
from tests.screens import scripted as s

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
ROUNDS, REGIONS = 9, 20
PAINT_RATIO, REST_SHARE = 1.6, 0.02


def measured(what: str, views: Path) -> dict[str, float]:
    """Figures of `screen_process` in a terminal."""
    result, out = os.pipe()
    environment = {**os.environ, "OUT": str(out), "PYTHONPATH": str(ROOT)}
    # compiled once, as where it is installed; kept apart, since the shell may forbid it
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(views.parent / "bytecode")}
    words = [sys.executable, screen_process.__file__, what, str(views)]
    with in_terminal(words, ROOT, environment, pass_fds=(out,)) as (process, drawn):
        os.close(out)
        actual = os.read(result, 4096)
        process.wait(60)
    os.close(result)
    assert actual, b"".join(drawn).decode(errors="replace")[-3000:]
    figures: dict[str, float] = json.loads(actual)
    return figures


def saved(folder: Path, *views: RegionView) -> Path:
    path = folder / "views.pickle"
    path.write_bytes(pickle.dumps({view.region.name: view for view in views}))
    return path


def test_the_first_picture_costs_at_most_1_6_times_that_of_an_empty_app(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    views = saved(tmp_path, *(s.running(replace(s.EU, name=f"r{n:02}", wave=1 + n // 5)) for n in range(REGIONS)))
    for what in ("empty", "paint"):
        measured(what, views)  # compiled and read once before
    pairs = [(measured("paint", views), measured("empty", views)) for _ in range(ROUNDS)]
    ours, empty = (statistics.median(pair[side]["seconds"] for pair in pairs) for side in (0, 1))
    text = f"{ours / empty:.2f} times an empty app's ({ours:.2f}/{empty:.2f} s)"
    what = f"first picture of {REGIONS} regions, from the start of the process"
    with capsys.disabled():
        check(Measurement(what=what, figure=ours / empty, limit=PAINT_RATIO, text=text))


def test_three_live_regions_at_rest_take_less_than_a_fiftieth_of_a_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share = measured("rest", saved(tmp_path, *(s.live(region) for region in (s.US, s.EU, s.AP))))["share"]
    with capsys.disabled():
        check(
            Measurement(
                what="three live regions at rest", figure=share, limit=REST_SHARE, text=f"{share:.1%} of a core"
            )
        )
